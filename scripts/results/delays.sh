#!/usr/bin/env bash
# Policies that were trained for delays, and decoders that know of them, on Push-T with decisions
# that arrive late. Resumable: run it again.
# Usage: scripts/results delays pusht_cchi_v7_lowdim.npz [OUT [EPISODES [SEEDS]]]
set -euo pipefail
cd "$(dirname "$0")/../.."
demonstrations=$1
out=${2:-runs/delays}
episodes=${3:-32}
seeds=${4:-11}
bid=${BID:-.venv/bin/bid}
mkdir -p "$out"
[ -f "$out/pusht.npz" ] || "$bid" bench data "$demonstrations" --task pusht --out "$out/pusht.npz"

policy() { # NAME OPTIONS...
  local name=$1
  shift
  "$bid" train "$out/pusht.npz" --family flow --task pusht --out "$out/$name" --steps "${STEPS:-3000}" --batch 128 \
    --device cpu --set threads=1 network.condition=256 action_reference=base augment.state=0.03 augment.history=0.5 "$@"
  [ -d "$out/bundle_$name" ] || "$bid" policy export "$out/$name" --task pusht --out "$out/bundle_$name"
}

bench() { # RUNS POLICY DECODERS RUNTIME OPTIONS...
  "$bid" bench pusht --bundle "$out/bundle_$2" --decoder "$3" --action-horizon 4 --delay 0,1,2,3,4 --seed "$seeds" \
    --episodes "$episodes" --runtime "$4" --workers "${WORKERS:-2}" --out "$out/runs_$1" "${@:5}" >"$out/$1.md"
}

policy flow
policy prefix --simulated-delay 4
policy roll --simulated-delay 4 --roll-forward
[ -d "$out/head" ] || "$bid" policy correct "$out/bundle_flow" "$out/pusht.npz" --out "$out/head"
bench flow flow vanilla,bid,bid+delay onnx
bench prefix prefix vanilla,bid onnx
bench roll roll vanilla,bid onnx
bench head flow vanilla,bid onnx --correction "$out/head"
bench rtc flow rtc torch # it needs gradients
