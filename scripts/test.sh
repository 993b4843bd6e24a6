#!/usr/bin/env bash
# The whole suite in lanes, three side by side on two cores. Tests of running arms, nodes and systems go by the clock:
# they wait most of the time, and their lanes go two at a time. Beside them goes one that computes, at a lower priority,
# so that it does not look like a slow robot. Where the user may raise priorities (root), all lanes go before other work
# on the computer, as the nodes themselves do. With SERIAL=1 one lane runs after the other: nothing disturbs a
# measurement.
# Usage: test.sh VENV
set -uo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=$(realpath "$venv")/bin/python
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# The tests start hundreds of processes. Without compiled files each one compiles what it imports.
unset PYTHONDONTWRITEBYTECODE
# Shares of a busy computer: by the clock and computing. Who may not raise a priority lowers that of the others.
priority=(-12 -4)
[ "$(nice -n -12 nice 2>/dev/null)" -lt 0 ] || priority=(0 8)

declare -A files=(
  # Whole systems, and what has a simulated Franka: a core is hardly enough for one of them.
  [runs]="test/nodes/test_cli.py test/nodes/test_in_charge.py test/nodes/test_ur_system_faults.py test/commands/test_new.py"
  [systems]="test/robots/test_contract.py test/commands/test_check.py test/commands/test_first_hour.py test/outside
    test/tasks/placing/test_world.py test/tasks/picking/test_world.py"
  [bench]="test/bench test/learning test/cameras test/test_docs.py"
)
# shellcheck disable=SC2086  # one word for each file
ignored() { printf -- '--ignore=%s ' $*; }
everything_timed="${files[runs]} ${files[systems]}"
files[arms]="test/robots $(ignored "$everything_timed")"
files[nodes]="test/nodes test/system $(ignored "$everything_timed")"
files[computing]=$(ignored test/robots test/nodes test/system "${files[bench]} $everything_timed")
timed=" nodes arms runs systems "
queue=(nodes arms runs systems other-python computing bench lint)
cores=$(nproc)
timed_at_once=$((cores < 4 ? 2 : cores / 2))
at_once=$((timed_at_once + 1))
[ -z "${SERIAL:-}" ] || at_once=1

# The command of a lane, by its name.
work() {
  case $1 in
    lint) make lint VENV="$venv" ;;
    other-python) scripts/test_other_python.sh "$venv" ;;
    # shellcheck disable=SC2086  # one word for each file
    *) "$python" -m pytest ${files[$1]} ;;
  esac
}
is_timed() { [[ $timed == *" $1 "* ]]; }
# A session of its own for each lane, because Linux divides a busy computer between sessions (sched(7)).
start() {
  local niceness=${priority[1]}
  ! is_timed "$1" || niceness=${priority[0]}
  setsid bash -c 'renice -n "$0" $$; echo "$0" >/proc/self/autogroup; eval "$1"; exec 2>&1; work "$2"' \
    "$niceness" "$(declare -p files python venv); $(declare -f work)" "$1" >"$logs/$1" 2>/dev/null &
  lanes[$!]=$1
}
timed_lanes() {
  local name count=0
  for name in "${lanes[@]}"; do ! is_timed "$name" || count=$((count + 1)); done
  echo "$count"
}
# Start what has a place, the first of the queue first.
fill() {
  local name waiting=()
  for name in "${queue[@]}"; do
    if [ ${#lanes[@]} -ge $at_once ] || { is_timed "$name" && [ "$(timed_lanes)" -ge $timed_at_once ]; }; then
      waiting+=("$name")
    else
      start "$name"
    fi
  done
  queue=("${waiting[@]}")
}
# Wait until the next lane has ended, and show what it said.
end_of_a_lane() {
  local ended
  wait -n -p ended "${!lanes[@]}" || status=1
  echo "== ${lanes[$ended]}, after ${SECONDS} s"
  cat "$logs/${lanes[$ended]}"
  unset "lanes[$ended]"
}
end_lanes() {
  for pid in "${!lanes[@]}"; do kill -TERM -- "-$pid"; done
  exit 130
}
trap end_lanes INT TERM
status=0
declare -A lanes=()
fill
while [ ${#lanes[@]} -gt 0 ]; do
  end_of_a_lane
  fill
done
exit "$status"
