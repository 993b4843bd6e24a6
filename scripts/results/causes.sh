#!/usr/bin/env bash
# What BID's gain depends on: one flow policy of Push-T with networks of three widths, with an early and a late weak
# policy, and without one. Resumable: run it again.
# Usage: scripts/results causes pusht_cchi_v7_lowdim.npz [OUT [EPISODES [SEEDS]]]
set -euo pipefail
cd "$(dirname "$0")/../.."
demonstrations=$1
out=${2:-runs/causes}
episodes=${3:-30}
seeds=${4:-12}
bid=${BID:-.venv/bin/bid}
mkdir -p "$out"
[ -f "$out/pusht.npz" ] || "$bid" bench data "$demonstrations" --task pusht --out "$out/pusht.npz"

policy() { # NAME WIDTHS WEAK_STEPS
  "$bid" train "$out/pusht.npz" --family flow --task pusht --out "$out/$1" --steps 3000 --weak-steps "$3" --batch 128 \
    --device cpu --set threads=1 network.condition=256 "network.widths=$2" action_reference=base augment.state=0.03 \
    augment.history=0.5
  [ -d "$out/bundle_$1" ] || "$bid" policy export "$out/$1" --task pusht --out "$out/bundle_$1"
}

bench() { # RUNS POLICY DECODERS OPTIONS...
  "$bid" bench pusht --bundle "$out/bundle_$2" --decoder "$3" --action-horizon 1 --seed "$seeds" \
    --episodes "$episodes" --runtime onnx --workers "${WORKERS:-2}" --out "$out/runs_$1" "${@:4}" >"$out/$1.md"
}

policy usual '[32,64,128]' 0 # weak: after a tenth of the steps
policy narrow '[16,32,64]' 0
policy wide '[48,96,192]' 0 # a bundle may have 20 MB
for width in usual narrow wide; do bench "$width" "$width" vanilla,bid; done
bench no_weak usual bid --no-weak
policy weak_2000 '[32,64,128]' 2000
bench weak_2000 weak_2000 bid
