#!/usr/bin/env bash
# Every run behind docs/results/pusht.md. Resumable: run it again. Each table's summary goes to docs/results/data/.
# Usage: scripts/results pusht [OUT [TABLE ...]]; without tables all of them, about four hours on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-runs/results}
shift || true
tables=${*:-published horizons samples variants metrics terms drift jump delay}
bid=${BID:-.venv/bin/bid}
keep=docs/results/data
mkdir -p "$out" "$keep"

# Cells that two tables share are run once, since all tables of one episode length have one folder.
bench() {
  local table=$1 folder=$2
  shift 2
  "$bid" bench pusht "$@" --out "$out/$folder" >"$out/$table.md"  # if this is refused, what is kept stays
  cp "$out/$folder/summary.json" "$keep/$table.json"
  cp "$out/$folder/report.html" "$out/$table.html"
}

for table in $tables; do
  echo "== $table" >&2
  case $table in
    published) bench published 300 --preset published ;;
    horizons) bench horizons 300 --decoder vanilla,warmstart,ema,bid --action-horizon 8 --noise 0,1.0 ;;
    samples) bench samples 300 --samples 1,4,8,12,16,32 --decoder vanilla,bid --noise 1.0 --seed 1 ;;
    variants) bench variants 300 --decoder vanilla,bid --variant paper,reference_v1,reference_v2,corrected --noise 0,1.0 --seed 1 ;;
    metrics) bench metrics 300 --decoder vanilla,bid,bid:metric=l1,bid:metric=cosine --noise 0,1.0 --seed 1 ;;
    terms) bench terms 300 --decoder vanilla,bid --terms backward,positive,negative,contrast,bid --noise 0,1.0 --seed 1 ;;
    drift) bench drift 400 --decoder vanilla,ema,bid --action-horizon 1,8,all --drift 0,1,2 --seed 1 --episodes 50 --steps 400 ;;
    jump) bench jump 300 --decoder vanilla,ema,bid,bid+ema,bid+warmstart --action-horizon 1,8,all --jump 60 --seed 1 ;;
    delay) bench delay 300 --decoder vanilla,bid,bid+delay --action-horizon 1 --delay 0,2,4 --seed 1 ;;
    *) echo "error: table '$table' does not exist" >&2; exit 2 ;;
  esac
done
