#!/bin/bash
# A Ray cluster of this machine and of others that ssh reaches (rented ones, say), with a token that only you can read.
#
#   examples/scale/ray.sh up 192.0.2.1 node1 node2       # this machine's address as the others see it, then their names
#   hotloop compare cartpole-dqn cartpole-rainbow --seeds 8 --on 192.0.2.1:6379
#   examples/scale/ray.sh down 192.0.2.1 node1 node2
#
# Every machine needs the same hotloop[ray] and Python on the path of a plain ssh command.
set -euo pipefail

deed=$1 address=$2
hosts=("${@:3}")
ssh=${HOTLOOP_SSH:-ssh}
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=${RAY_AUTH_TOKEN_PATH:-$HOME/.ray/auth_token}
# lost nodes are noticed within seconds, not after a minute
export RAY_health_check_period_ms=1000 RAY_health_check_timeout_ms=1000 RAY_health_check_failure_threshold=3

case $deed in
up)
    mkdir -p "$(dirname "$RAY_AUTH_TOKEN_PATH")"
    [ -s "$RAY_AUTH_TOKEN_PATH" ] || (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$RAY_AUTH_TOKEN_PATH")
    chmod 600 "$RAY_AUTH_TOKEN_PATH"
    ray start --head --node-ip-address "$address" --port 6379 --include-dashboard false
    for host in "${hosts[@]}"; do
        "$ssh" "$host" 'umask 077 && mkdir -p ~/.ray && cat > ~/.ray/auth_token' < "$RAY_AUTH_TOKEN_PATH"
        "$ssh" "$host" "RAY_AUTH_MODE=token ray start --address $address:6379" < /dev/null
    done
    ;;
down)
    for host in "${hosts[@]}"; do "$ssh" "$host" 'ray stop' < /dev/null || true; done
    ray stop
    ;;
*)
    echo "ray.sh up|down ADDRESS HOST..." >&2
    exit 2
    ;;
esac
