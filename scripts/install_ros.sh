#!/usr/bin/env bash
# Install bid_ros beside a ROS 2 Jazzy installation, and build it in the workspace that this is called from: Debian
# packages by rosdep, messages and package by colcon, and what only PyPI has (requirements/ros.lock) into a virtual
# environment of its own, which install/setup.bash puts on the path. Nothing of the computer's own Python is changed.
# Usage: install_ros.sh [--dry-run] [--no-apt] [--dependencies]
#   --dry-run  print the commands only
#   --no-apt   leave the Debian packages alone, because they are there or somebody else installs them
#   --dependencies  end before the build: all that an image needs before the sources, which change more often
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dry="" apt=yes build=yes
for argument in "$@"; do
  case $argument in
    --dry-run) dry=yes ;;
    --no-apt) apt="" ;;
    --dependencies) build="" ;;
    *) echo "error: argument '$argument' does not exist; valid are --dry-run, --no-apt and --dependencies" >&2; exit 2 ;;
  esac
done

setup=/opt/ros/jazzy/setup.bash
if [ -z "${ROS_DISTRO:-}" ] && [ -f $setup ]; then set +u; source $setup; set -u; fi
if [ "${ROS_DISTRO:-}" != jazzy ]; then
  echo "error: ROS_DISTRO is '${ROS_DISTRO:-}'; valid is jazzy: install ROS 2 Jazzy and source its setup.bash first" >&2
  exit 2
fi

run() {
  echo "+ $*"
  [ -n "$dry" ] || "$@"
}
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
if [ -n "$apt" ]; then
  run $sudo apt-get update
  # What rosdep has no key for: rendering without a screen, and the virtual environment that follows.
  run $sudo apt-get install -y --no-install-recommends python3-venv python3-rosdep libegl1 libopengl0 libgl1-mesa-dri
  [ -d /etc/ros/rosdep/sources.list.d ] || run $sudo rosdep init
  run rosdep update --rosdistro jazzy
  # The lock has these, at versions that were tried.
  pip_keys=$(grep -oE 'python3-[a-z]+-pip' "$root/package.xml" | tr '\n' ' ')
  run rosdep install --rosdistro jazzy --from-paths "$root" "$root/bid_msgs" --ignore-src -y --skip-keys "$pip_keys"
fi
# The distribution's own packages stay as they are, NumPy above all: ROS's messages are compiled for it.
overlay=install/bid_ros/overlay
run python3 -m venv --system-site-packages $overlay
run $overlay/bin/python -m pip install --quiet --no-deps -r "$root/requirements/ros.lock"
[ -n "$build" ] || { echo "ready for the sources"; exit 0; }
run colcon build --base-paths "$root" "$root/bid_msgs"
echo "ready: source install/setup.bash && bid --help"
