#!/usr/bin/env bash
# Build bid_msgs, and tf2_msgs, which no wheel has, into the virtual environment of the ROS 2 wheels, once: again only
# if the messages, the wheels or the environment changed. Usage: build_messages.sh VENV
set -euo pipefail
venv=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
state=$({ find bid_msgs scripts/tf2_msgs -type f | sort | xargs cat scripts/build_*.sh && grep -E '^(ros-|numpy)' requirements/run.lock; } | sha256sum)
[ "$(cat "$venv/.bid_msgs" 2>/dev/null)" != "$state" ] || exit 0

echo "building bid_msgs and tf2_msgs"
scripts/repair_wheels.sh "$venv"
scripts/build_package.sh "$venv" scripts/tf2_msgs &
scripts/build_package.sh "$venv" bid_msgs
wait $!
echo "$state" >"$venv/.bid_msgs"
