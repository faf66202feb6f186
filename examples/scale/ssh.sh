#!/bin/bash
# The runs of a list on machines that share nothing but ssh: the list goes there, the runs come home. Each machine does
# every n-th job, one after another; the same line again continues what was broken off and leaves finished runs alone.
#
#   hotloop compare cartpole-dqn "wide=cartpole-dqn --network.hidden 256 256" --seeds 8 --plan jobs.jsonl
#   examples/scale/ssh.sh jobs.jsonl node1 node2 node3
#
# Needs ssh, tar, and the same hotloop on every machine. HOTLOOP_SSH names another program in the place of ssh.
set -euo pipefail

list=$1
hosts=("${@:2}")
ssh=${HOTLOOP_SSH:-ssh}
name=$(basename "$list" .jsonl)
home=$(dirname "$list")
jobs=$(grep -c -e '"kind":"run"' -e '"kind":"script"' "$list")

work_through() { # host, its number
    local there=("$name.jsonl") failed=0
    [ ! -d "$home/$name" ] || there+=("$name") # what an earlier try brought home
    tar -C "$home" -cz "${there[@]}" | "$ssh" "$1" "mkdir -p hotloop-jobs && tar -C hotloop-jobs -xz"
    for ((index = $2; index < jobs; index += ${#hosts[@]})); do
        "$ssh" "$1" "cd hotloop-jobs && hotloop job run $name.jsonl --index $index" </dev/null || failed=1
        "$ssh" "$1" "tar -C hotloop-jobs -cz $name" </dev/null | tar -C "$home" -xz
    done
    return $failed
}

running=()
for number in "${!hosts[@]}"; do
    work_through "${hosts[number]}" "$number" &
    running+=($!)
done
failed=0
for process in "${running[@]}"; do
    wait "$process" || failed=1
done
exit $failed
