#!/usr/bin/env bash
# With the supported Python that VENV does not have: set-up, a part of the tests that compute, an episode in the twin.
# Where that Python is not installed this says so and ends.
# Usage: test_other_python.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
own=$("$1/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
other=$([ "$own" = 3.11 ] && echo 3.12 || echo 3.11)
if ! python=$(scripts/find_python.sh "$other"); then
  echo "Python $other is not installed here: only $own was tested"
  exit 0
fi
venv=$1-$other
unset PYTHONDONTWRITEBYTECODE  # else each process compiles what it imports
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

echo "Python $other"
PYTHON=$python scripts/setup.sh "$venv" run data develop
"$venv/bin/python" -m pytest test/control test/core test/decoding test/policy test/recording test/safety
# A computer that tests share stutters, which is no fault of a node: longer deadlines.
for node in arm safety; do
  printf '%s: {ros__parameters: {heartbeat_deadline_s: 2.0}}\n' $node
done >"$out/patient.yaml"
"$venv/bin/bid" up franka_place --episodes 1 --moving 0 --parameters "$out/patient.yaml" --out "$out/run"
