#!/bin/bash
# Two network namespaces as two machines, the four commands of docs/scale.md, and a link that goes down in the middle.
#   two_machines.sh FOLDER PYTHON SEEDS SETTINGS...      exit code 77: namespaces cannot be made here
set -u
folder=$1 python=$2 seeds=$3
shift 3
bin=$(dirname "$python")
a=hotloop-a-$$ b=hotloop-b-$$
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$folder/token RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1
temp=$(mktemp -d /tmp/hotloop-test-XXXXXX)
mkdir "$temp/a" "$temp/b" "$temp/work"

finish() { # everything is killed but the janitors, which then do their work
    for name in $a $b; do
        for pid in $(ip netns pids $name 2>/dev/null); do grep -q janitor.py "/proc/$pid/cmdline" 2>/dev/null || kill -9 "$pid" 2>/dev/null; done
    done
    for _ in $(seq 30); do [ -z "$(ip netns pids $a; ip netns pids $b)" ] && break; sleep 1; done
    ls -d "$temp"/work/hotloop-* 2>/dev/null && echo "a folder stayed on the second machine"
    for name in $a $b; do ip netns del $name 2>/dev/null; done
    rm -rf "$temp"
}
trap finish EXIT

ip netns add $a && ip netns add $b && ip link add va$$ netns $a type veth peer name vb$$ netns $b || exit 77
ip -n $a addr add 10.77.0.1/24 dev va$$ && ip -n $a link set va$$ up && ip -n $a link set lo up || exit 77
ip -n $b addr add 10.77.0.2/24 dev vb$$ && ip -n $b link set vb$$ up && ip -n $b link set lo up || exit 77
(umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/token")

RAY_health_check_period_ms=1000 RAY_health_check_timeout_ms=1000 RAY_health_check_failure_threshold=3 RAY_health_check_initial_delay_ms=1000 \
    ip netns exec $a "$python" -m ray.scripts.scripts start --head --node-ip-address 10.77.0.1 --port 6379 --include-dashboard false \
    --num-cpus 1 --object-store-memory 134217728 --temp-dir "$temp/a" >&2 || exit 1
TMPDIR=$temp/work ip netns exec $b "$python" -m ray.scripts.scripts start --address 10.77.0.1:6379 --node-ip-address 10.77.0.2 \
    --num-cpus 1 --object-store-memory 134217728 >&2 || exit 1

(umask 077 && echo wrong > "$folder/wrong")
RAY_AUTH_TOKEN_PATH=$folder/wrong timeout 120 ip netns exec $a "$bin/hotloop" compare a=cartpole-dqn --seeds 1 --on 10.77.0.1:6379 --out "$folder/no" --quiet > "$folder/refused" 2>&1
echo "wrong token: exit code $?: $(grep -m1 error: "$folder/refused")"

ip netns exec $a "$bin/hotloop" compare a=cartpole-dqn --seeds "$seeds" --on 10.77.0.1:6379 --out "$folder/out" -- "$@" &
driver=$!
if [ "${PARTITION:-yes}" = yes ]; then
    while kill -0 $driver 2>/dev/null && [ "$(ls -d "$folder"/out/a/seed-*/checkpoints/0* 2>/dev/null | cut -d/ -f1-99 | sed 's#/checkpoints.*##' | sort -u | wc -l)" -lt 2 ]; do sleep 0.2; done
    ip -n $a link set va$$ down
    echo "link down at $(date +%s.%N)"
fi
wait $driver
