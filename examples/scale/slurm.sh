#!/bin/bash
# A comparison as a Slurm array: one task for each run, on a file system that all nodes share.
#
#   hotloop compare cartpole-dqn "wide=cartpole-dqn --network.hidden 256 256" --seeds 8 --plan jobs.jsonl
#   sbatch --array=0-15 examples/scale/slurm.sh jobs.jsonl
#
# A task that was stopped (time limit, pre-emption) is resumed where it stopped: submit the same line again, finished runs
# are kept. Once all are finished, the first line again compares them.
#SBATCH --job-name=hotloop
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
set -euo pipefail

# exec: the signal that Slurm sends a minute before the end reaches hotloop, which saves a checkpoint
exec hotloop job run "$1" --index "$SLURM_ARRAY_TASK_ID" "${@:2}"
