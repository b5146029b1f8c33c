#!/bin/sh
# The steps of the Dockerfile without Docker, in a clean prefix: install, start as an ordinary user
# where this one is root, check health and a translation, and stop in order.
# Usage: deploy/check-image.sh [PREFIX] [PORT]
set -eu
cd "$(dirname "$0")/.."
prefix=${1:-$(mktemp -d)/bothends}
port=${2:-8018}

"${PYTHON:-python3}" -m venv "$prefix"
"$prefix/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check --constraint constraints.txt '.[serve]'
if "$prefix/bin/python" -c 'import torch' 2>/dev/null; then
    echo "check-image: PyTorch is in the image" >&2
    exit 1
fi

as_user=""
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod a+rx "$(dirname "$prefix")"
    as_user="setpriv --reuid 65534 --regid 65534 --clear-groups"
fi
cd /
# The checkout must not be what is tested.
unset PYTHONPATH
$as_user "$prefix/bin/bothends" serve --host 127.0.0.1 --port "$port" --log-level warning &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT

"$prefix/bin/python" - "$port" <<'PYTHON'
import json
import sys
import time
import urllib.error
import urllib.request

base = f"http://127.0.0.1:{sys.argv[1]}"
for attempt in range(100):
    try:
        health = json.load(urllib.request.urlopen(f"{base}/health", timeout=2))
        break
    except urllib.error.URLError:
        time.sleep(0.1)
else:
    sys.exit("check-image: the server does not answer")
assert health == {"status": "ok"}, health
body = json.dumps({"q": "I am hungry.", "source": "en", "target": "pt"}).encode()
request = urllib.request.Request(f"{base}/translate", body, {"content-type": "application/json"})
answer = json.load(urllib.request.urlopen(request, timeout=30))
assert answer == {"translatedText": "Estou com fome."}, answer
page = urllib.request.urlopen(f"{base}/", timeout=5).read()
assert b"bothends" in page
assert urllib.request.urlopen(f"{base}/page/app.js", timeout=5).read()
PYTHON

kill -TERM "$server"
wait "$server"
trap - EXIT
echo "check-image: installed without PyTorch, served, and stopped in order ($(du -sh "$prefix" | cut -f1))"
