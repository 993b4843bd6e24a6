#!/usr/bin/env bash
# Everything that there is to test, one lane after the other: the suite, and what takes too long for it. Each lane's
# result and time is one line, here and in docs/explanation/tests.md. What passed at this commit is not run again: call
# it again after an interruption. A lane that fails does not end it.
# Usage: test_all.sh [VENV] [LANE]...; exit status 1 if a lane failed.
set -uo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
[ $# -eq 0 ] || shift
names=(suite serial long installation other-python benchmarks bare mutation docs)
work() {
  case $1 in
    suite) make test VENV="$venv" ;;
    serial) SERIAL=1 scripts/test.sh "$venv" ;;
    long) unset PYTHONDONTWRITEBYTECODE; "$venv/bin/python" -m pytest -m long ;;
    installation) "$venv/bin/python" -m pytest -m installation test/setup ;;
    other-python) scripts/test_other_python.sh "$venv" && scripts/check_numpy1.sh ;;
    benchmarks) scripts/test_benchmarks.sh "$venv-benchmarks" ;;
    bare) scripts/test_bare.sh ;;
    mutation) scripts/mutation.sh "$venv" ;;
    docs) make docs VENV="$venv" ;;
  esac
}
wanted=("${@:-${names[@]}}")
for name in "${wanted[@]}"; do
  [[ " ${names[*]} " == *" $name "* ]] || { echo "error: no lane '$name'; valid are ${names[*]}" >&2; exit 2; }
done
commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain --untracked-files=no -- . ':!docs/explanation/tests.md')" ] || commit=$commit+
state=.build/test_all/$commit
mkdir -p "$state"
status=0
for name in "${wanted[@]}"; do
  # A tree with changes has no name that would say what passed.
  if [ -f "$state/$name" ] && [[ $commit != *+ ]] && grep -q passed "$state/$name"; then
    echo "$(cat "$state/$name") (before)"
    continue
  fi
  begin=$SECONDS
  result=passed
  work "$name" >"$state/$name.log" 2>&1 </dev/null || { result=failed; status=1; }
  printf '%s: %s, %d min %02d s\n' "$name" "$result" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)) \
    | tee "$state/$name"
  [ $result = passed ] || tail -n 20 "$state/$name.log"
done
scripts/test_results.py "$state" docs/explanation/tests.md
exit "$status"
