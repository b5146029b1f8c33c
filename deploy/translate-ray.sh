#!/bin/sh
# A Ray cluster out of machines that ssh reaches, and a translation on all of their cores.
#
#   export MODEL=/shared/model INPUT=/shared/news.en OUTPUT=/shared/news.de
#   deploy/translate-ray.sh host1 host2 host3 -- --beam 1
#
# This machine is the head of the cluster. Paths (or URLs) must mean the same on all machines, and
# all need `pip install 'bothends[cluster]'`, in the same versions. Machines may join meanwhile with
# the line that this prints. The cluster is stopped at the end, whatever happens.
set -eu
: "${MODEL:?a model directory}" "${INPUT:?a file of lines}" "${OUTPUT:?where translations go}"

hosts=
while [ $# -gt 0 ] && [ "$1" != -- ]; do hosts="$hosts $1"; shift; done
[ $# -gt 0 ] && shift
address="${ADDRESS:-$(hostname -I | cut -d ' ' -f 1):6379}"
export RAY_USAGE_STATS_ENABLED=0

stop() {
    for host in $hosts; do ${SSH:-ssh -o BatchMode=yes} "$host" "ray stop" </dev/null & done
    ray stop
    wait
}
trap stop EXIT
ray start --head --port "${address##*:}" --include-dashboard false
for host in $hosts; do
    ${SSH:-ssh -o BatchMode=yes} "$host" "RAY_USAGE_STATS_ENABLED=0 ray start --address $address" \
        </dev/null || echo "$host: did not join" >&2
done
echo "another machine joins with: ray start --address $address" >&2
bothends translate "$INPUT" --model "$MODEL" --output "$OUTPUT" --workers "ray:$address" "$@"
