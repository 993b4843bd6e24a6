#!/usr/bin/env bash
# Build bid_msgs, and what is used of tf2_msgs, control_msgs and controller_manager_msgs, which no wheel has, into the
# virtual environment of the ROS 2 wheels, once: again only if the messages, the wheels or the environment changed.
# Usage: build_messages.sh VENV
set -euo pipefail
venv=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
others="scripts/tf2_msgs scripts/control_msgs scripts/controller_manager_msgs"
state=$({ find bid_msgs $others -type f | sort | xargs cat scripts/build_*.sh && grep -E '^(ros-|numpy)' requirements/run.lock; } | sha256sum)
[ "$(cat "$venv/.bid_msgs" 2>/dev/null)" != "$state" ] || exit 0

echo "building bid_msgs, tf2_msgs, control_msgs and controller_manager_msgs"
scripts/repair_wheels.sh "$venv"
for package in $others; do scripts/build_package.sh "$venv" "$package"; done &
scripts/build_package.sh "$venv" bid_msgs
wait $!
echo "$state" >"$venv/.bid_msgs"
