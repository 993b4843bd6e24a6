#!/usr/bin/env bash
# The whole suite in five lanes side by side: tests of running arms, nodes and systems wait for the clock most of the
# time, and the others compute. Where the user may raise priorities (root), the lanes with a clock go before the rest, as
# the nodes themselves do. So other work on the computer does not look like a slow robot. With SERIAL=1 one lane runs
# after the other: nothing disturbs a measurement. Usage: test.sh VENV
set -uo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "$1")/bin
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Whole systems, and what has a simulated Franka: a core is hardly enough for one of them. They take about as long as the
# other nodes.
systems=(test/robots/test_contract.py test/nodes/test_cli.py test/nodes/test_in_charge.py test/nodes/test_ur_system_faults.py
  test/commands/test_new.py test/commands/test_check.py test/commands/test_first_hour.py test/outside
  test/tasks/placing/test_world.py test/tasks/picking/test_world.py)
benches=(test/bench test/learning test/cameras test/test_docs.py)
ignored() { printf -- '--ignore=%s ' "$@"; }

# lane NAME NICENESS COMMAND...: a session of its own, because Linux divides a busy computer between sessions (sched(7)).
lane() {
  local name=$1 niceness=$2
  shift 2
  setsid bash -c 'renice -n "$0" $$; echo "$0" >/proc/self/autogroup; exec "$@"' "$niceness" "$@" \
    >"$logs/$name" 2> >(grep -v "Permission denied" >>"$logs/$name") &
  lanes[$!]=$name
  [ -z "${SERIAL:-}" ] || end_of_a_lane
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
pytest=("$bin/python" -m pytest)

# shellcheck disable=SC2046  # one word for each file
lane arms -12 "${pytest[@]}" test/robots $(ignored "${systems[@]}")
# shellcheck disable=SC2046
lane nodes -8 "${pytest[@]}" test/nodes test/system $(ignored "${systems[@]}")
lane systems -8 "${pytest[@]}" "${systems[@]}"
# shellcheck disable=SC2046
lane computing -4 "${pytest[@]}" $(ignored test/robots test/nodes test/system "${benches[@]}" "${systems[@]}")
lane bench -4 bash -c '"$@"; tests=$?; make lint VENV="$0" && exit "$tests"' "$1" "${pytest[@]}" "${benches[@]}"
while [ ${#lanes[@]} -gt 0 ]; do end_of_a_lane; done
exit "$status"
