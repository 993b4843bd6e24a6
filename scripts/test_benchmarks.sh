#!/usr/bin/env bash
# Tests of the benches in an environment of their own, without the suite's ROS. Usage: test_benchmarks.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/benchmarks.sh "$1"
"$1/bin/python" -m pip install --quiet pytest
"$1/bin/python" -m pytest -q -p no:cacheprovider --noconftest -c /dev/null --rootdir . \
  --import-mode importlib test/bench/door/test_env.py test/bench/kitchen/test_env.py \
  test/bench/robomimic/test_env.py
