#!/bin/sh
# A translation shared by machines that ssh reaches, and merged by this one.
#
#   export MODEL=/shared/model INPUT=/shared/news.en OUTPUT=/shared/news.de
#   deploy/translate-ssh.sh host1 host2 host3 -- --beam 1
#
# What follows -- are options of `bothends translate`. Paths (or URLs) must mean the same on all
# machines, and `bothends` must be on the PATH of a login without a terminal, or BOTHENDS names it.
# If a machine is lost, its part is done by this one at the end; run it again if this one is lost.
set -eu
: "${MODEL:?a model directory}" "${INPUT:?a file of lines}" "${OUTPUT:?where translations go}"

hosts=
while [ $# -gt 0 ] && [ "$1" != -- ]; do hosts="$hosts $1"; shift; done
[ $# -gt 0 ] && shift
[ -n "$hosts" ] || { echo "usage: $0 HOST... [-- OPTION...]" >&2; exit 2; }
# shellcheck disable=SC2086
parts=$(set -- $hosts; echo $#)

quoted() {  # words that a shell on the other side reads as they are
    for word in "$@"; do printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"; done
}

part=0
for host in $hosts; do
    part=$((part + 1))
    ${SSH:-ssh -o BatchMode=yes -o ServerAliveInterval=30} "$host" "$(quoted "${BOTHENDS:-bothends}" \
        translate "$INPUT" --model "$MODEL" --output "$OUTPUT" --shard "$part/$parts" "$@")" \
        </dev/null || echo "$host: part $part of $parts failed; it is done here at the end" >&2 &
done
wait
exec "${BOTHENDS:-bothends}" translate "$INPUT" --model "$MODEL" --output "$OUTPUT" \
    --workers "$(getconf _NPROCESSORS_ONLN)" "$@"
