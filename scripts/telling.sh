#!/usr/bin/env bash
# Run a command that is silent for long, and say while it runs for how many seconds it has: on a terminal in one line,
# elsewhere in a line every 15 s (TELL_S). Ends with the command's status. Usage: telling.sh WHAT COMMAND...
set -euo pipefail
what=$1
shift
began=$SECONDS
period=${TELL_S:-15} end='\n'
[ ! -t 2 ] || period=1 end='\r'
# $$ is this script also in what runs beside it: whatever ends the script ends its lines.
while sleep "$period" && kill -0 $$; do
  # shellcheck disable=SC2059  # the end is an escape
  printf "%s: %d s$end" "$what" $((SECONDS - began)) >&3
done 3>&2 >/dev/null 2>&1 &
teller=$!
status=0
"$@" || status=$?
kill $teller
wait $teller 2>/dev/null || true
[ ! -t 2 ] || printf '\033[K' >&2
exit $status
