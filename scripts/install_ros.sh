#!/usr/bin/env bash
# Install bid_ros into a ROS 2 Jazzy installation, and build it in the workspace that this is called from: Debian packages
# by rosdep, what only PyPI has from requirements/ros.lock, messages and package by colcon.
# Usage: install_ros.sh [--dry-run] [--no-apt]
#   --dry-run  print the commands only
#   --no-apt   leave the Debian packages alone, because they are there or somebody else installs them
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dry="" apt=yes
for argument in "$@"; do
  case $argument in
    --dry-run) dry=yes ;;
    --no-apt) apt="" ;;
    *) echo "error: argument '$argument' does not exist; valid are --dry-run and --no-apt" >&2; exit 2 ;;
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
  # What rosdep has no key for: rendering without a screen, and pip for what follows.
  run $sudo apt-get install -y --no-install-recommends python3-pip python3-rosdep libegl1 libopengl0 libgl1-mesa-dri
  [ -d /etc/ros/rosdep/sources.list.d ] || run $sudo rosdep init
  run rosdep update --rosdistro jazzy
  # The lock has these, at versions that were tried.
  pip_keys=$(grep -oE 'python3-[a-z]+-pip' "$root/package.xml" | tr '\n' ' ')
  run rosdep install --rosdistro jazzy --from-paths "$root" "$root/bid_msgs" --ignore-src -y --skip-keys "$pip_keys"
fi
# The distribution's own packages stay as they are, NumPy above all: ROS's messages are compiled for it.
run python3 -m pip install --break-system-packages --no-deps --ignore-installed -r "$root/requirements/ros.lock"
run colcon build --base-paths "$root" "$root/bid_msgs"
echo "ready: source install/setup.bash && bid --help"
