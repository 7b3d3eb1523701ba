#!/bin/sh
# Take the steps of the Containerfile without a container engine: install Podium into a new environment, compile the
# kernels, and start a service that cannot write to its code or kernels. Run as root, the service gives up its rights.
#   deploy/steps.sh FOLDER MODEL...     creates FOLDER/podium and FOLDER/kernels on the first call, then serves
# PYTHON is the Python to build with. PODIUM_INSTALL is what to install: by default this source with the extra serve.
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
