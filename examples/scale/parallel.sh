#!/bin/bash
# The runs of a list on this machine, or on several that share a folder, by GNU parallel.
#
#   hotloop compare cartpole-dqn "wide=cartpole-dqn --network.hidden 256 256" --seeds 8 --plan jobs.jsonl
#   examples/scale/parallel.sh jobs.jsonl                              # as many at once as there are cores
#   examples/scale/parallel.sh jobs.jsonl --sshlogin node1,node2 --workdir "$PWD"
#
# Options after the list are parallel's own.
set -euo pipefail

list=$1
last=$(($(grep -c -e '"kind":"run"' -e '"kind":"script"' "$list") - 1))
seq 0 "$last" | parallel "${@:2}" --halt soon,fail=20% hotloop job run "$list" --index {}
