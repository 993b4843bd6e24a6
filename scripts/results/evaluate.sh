#!/usr/bin/env bash
# The comparison of the README: static and moving cup, perhaps at more than one speed, five ways to execute chunks, 20
# episodes each with the same seeds, in the real-time twin. Seeds below 5000 were looked at while settings were chosen; 5000 on were not.
# BID takes its negatives from the bundle: ur5_pick has no weak policy, so there it is backward coherence and positives.
# Resumable. A cell is one run in one process: an episode that safety stops counts as a failure, and the twin is reset. An
# episode that an interruption or a failure of the computer ended or disturbed counts for nobody, also a success; its seed
# is run again. Every part is in its own folder, and the table counts them together.
# Usage: scripts/results evaluate SYSTEM OUT [EPISODES [SPEED...]]; SYSTEM is franka_place or ur5_pick, SPEED another one of the cup
# in m/s
set -uo pipefail
trap 'echo "interrupted; run the same command again to go on" >&2; exit 130' INT
cd "$(dirname "$0")/../.."
[ $# -ge 2 ] || { echo "usage: scripts/results evaluate SYSTEM OUT [EPISODES [SPEED...]]" >&2; exit 2; }
system=$1
out=$2
episodes=${3:-20}
shift $(($# < 3 ? $# : 3))
[[ $episodes =~ ^[1-9][0-9]*$ ]] || { echo "EPISODES is $episodes; valid is 1 or more" >&2; exit 2; }
for speed in "$@"; do
  [[ $speed =~ ^0(\.0[0-9]*|\.10*)?$ ]] || { echo "SPEED is $speed; valid is 0 to 0.1, in m/s" >&2; exit 2; }
done
bid=${BID:-.venv/bin/bid}
python=$(dirname "$bid")/python
first=5000

left() { # CELL: the first seed that counts in no part yet, and how many such seeds follow each other; nothing if none does
  "$python" - "$1" "$first" "$episodes" <<'END'
import json
import sys
from pathlib import Path

from bid_ros.episodes.comparison import counts

cell, first, episodes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
runs = (json.loads(file.read_text()) for file in cell.glob("*/run.json"))
done = {result["seed"] for run in runs for result in run["results"] if counts(result)}
seed = next((seed for seed in range(first, first + episodes) if seed not in done), None)
if seed is not None:
    print(seed, next(end for end in range(seed, first + episodes + 1) if end in done or end == first + episodes) - seed)
END
}

run() { # NAME arguments...
  local cell=$out/$1 next seed count
  shift
  while next=$(left "$cell") && [ -n "$next" ]; do
    read -r seed count <<<"$next"
    "$bid" up "$system" --episodes "$count" --seed "$seed" --no-record --out "$cell/from_$seed" "$@"
    [ $? -lt 128 ] || exit 130
    [ "$(left "$cell")" != "$next" ] || { echo "$cell: no episode was judged" >&2; return 1; }
  done
}

for cup in static moving "$@"; do
  # A moving cup has the speed that the system's shipped policy is made for, the default.
  case $cup in
    static) speed=(--moving 0) ;;
    moving) speed=() ;;
    *) speed=(--moving "$cup") ;;
  esac
  run "bid_lead_$cup" "${speed[@]}" --decoder bid+lead --samples 16
  run "bid_$cup" "${speed[@]}" --decoder bid --samples 16
  run "vanilla_closed_$cup" "${speed[@]}" --decoder vanilla --samples 1
  run "vanilla_open_$cup" "${speed[@]}" --decoder vanilla --samples 1 --action-horizon 15
  run "ema_$cup" "${speed[@]}" --decoder ema --samples 1
done
"$bid" table "$out"/*/*/run.json --plot "$out/success.png" >"$out/table.md"
cat "$out/table.md"
