#!/usr/bin/env bash
# The suite: lint beside all tests but the long ones, for which there is scripts/test_all.sh. pytest-xdist runs the tests
# in three processes on two cores; test/lanes.py says which go together. SERIAL=1: in one, so nothing disturbs it.
# Usage: test.sh VENV [ARGUMENT of pytest]...
set -uo pipefail
cd "$(dirname "$0")/.."
venv=$1
shift
python=$(realpath "$venv")/bin/python
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The tests start hundreds of processes. Without compiled files each one compiles what it imports.
unset PYTHONDONTWRITEBYTECODE
# The workers must collect the same tests in the same order, and some are parametrized by a set.
export PYTHONHASHSEED=0
workers=$((3 * $(nproc) / 2))
# More workers than cores: more threads in each would wait for one another, as `bid up` has it.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
[ -z "${SERIAL:-}" ] || workers=1

# A session of its own, at the lowest priority: Linux divides a busy computer between sessions (sched(7)).
setsid bash -c 'echo 15 >/proc/self/autogroup; nice -n 15 make lint VENV="$0"' "$venv" >"$log" 2>&1 &
lint=$!
trap 'kill -TERM -- "-$lint" 2>/dev/null; rm -f "$log"; exit 130' INT TERM
status=0
"$python" -m pytest -n "$workers" --dist loadgroup "$@" || status=1
wait "$lint" || status=1
echo "== lint"
cat "$log"
exit "$status"
