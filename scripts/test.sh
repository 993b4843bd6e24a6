#!/usr/bin/env bash
# The whole suite. Tests of running nodes, arms and twins wait for the clock most of the time, so what only computes, lint
# and types included, runs beside them at a lower priority. Usage: test.sh VENV
set -uo pipefail
cd "$(dirname "$0")/.."
bin=$1/bin
log=$(mktemp)
trap 'rm -f "$log"' EXIT

computing() {
  "$bin/ruff" check . && "$bin/ruff" format --check . && "$bin/mypy" && "$bin/python" -m pytest --ignore=test/arms --ignore=test/nodes --ignore=test/sim
}

(renice -n 10 "$BASHPID" >/dev/null; computing) >"$log" 2>&1 &
other=$!
"$bin/python" -m pytest test/arms test/nodes test/sim
waiting=$?
wait "$other"
computed=$?
cat "$log"
exit $((waiting ? waiting : computed))
