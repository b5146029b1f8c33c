#!/bin/sh
# A training on several machines that ssh reaches; the first of them is where they meet.
#
#   deploy/train-ssh.sh host1 host2 -- /shared/recipe.yaml run=/shared/run
#
# Paths must mean the same on all machines, the run directory among them. torchrun must be on the
# PATH of a login without a terminal, or TORCHRUN names it. Ctrl-C here ends it everywhere; the same
# command goes on from the last checkpoint. A machine that comes back may join again:
# `deploy/train-ssh.sh` with all of them does that, or the line below on that machine alone.
set -eu
hosts=
while [ $# -gt 0 ] && [ "$1" != -- ]; do hosts="$hosts $1"; shift; done
[ $# -gt 1 ] || { echo "usage: $0 HOST... -- RECIPE.yaml [KEY=VALUE...]" >&2; exit 2; }
shift
# shellcheck disable=SC2086
nodes=$(set -- $hosts; echo $#)
# shellcheck disable=SC2086
first=$(set -- $hosts; echo "$1")

quoted() {  # words that a shell on the other side reads as they are
    for word in "$@"; do printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"; done
}

for host in $hosts; do
    # The variable: a machine that comes back would wait in vain for the store of the round before.
    ${SSH:-ssh -tt -o BatchMode=yes -o ServerAliveInterval=30} "$host" "$(quoted \
        env TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 "${TORCHRUN:-torchrun}" --nnodes "$nodes" --nproc-per-node "${PROCESSES:-1}" \
        --max-restarts 3 --rdzv-backend c10d --rdzv-id "${JOB:-bothends}" \
        --rdzv-endpoint "$first:${PORT:-29400}" --shutdown-timeout 3600 \
        -m bothends train "$@")" </dev/null &
done
wait
