#!/usr/bin/env bash
# Make the environment of the benches that need another MuJoCo than the twins: bid_ros without ROS, and their simulators.
# Idempotent. Usage: benchmarks.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
# The lock names all that is needed; robosuite itself asks for more, see requirements/robosuite.txt.
"$venv/bin/python" -m pip install --quiet --no-deps -r requirements/benchmarks.lock
"$venv/bin/python" -m pip install --quiet --no-deps -e .
echo "try it: $venv/bin/bid bench door --episodes 5"
