#!/bin/sh
# The steps of the Containerfile without a container engine: an environment of its own, kernels compiled, then a service
# whose code and kernels are read-only, as a user without rights where this is run as root.
#   deploy/steps.sh FOLDER MODEL...     makes FOLDER/podium and FOLDER/kernels once, then serves
# PYTHON names the Python to build with; PODIUM_INSTALL what to install (this source with the extra serve by default).
set -eu
[ $# -ge 2 ] || { echo "usage: $0 FOLDER MODEL..." >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
export NUMBA_CACHE_DIR="$folder/kernels" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
if [ ! -e "$folder/ready" ]; then
    "${PYTHON:-python3}" -m venv "$folder/podium"
    "$folder/podium/bin/python" -m pip install --quiet "${PODIUM_INSTALL:-$source[serve]}"
    "$folder/podium/bin/podium" warmup
    chmod -R a+rX,a-w "$folder/kernels" "$folder/podium"
    touch "$folder/ready"
fi
set -- "$folder/podium/bin/podium" serve "$@"
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all "$@"
fi
exec "$@"
