#!/usr/bin/env bash
# The policy of Franka Kitchen: data set, training, bundle. Resumable: run it again. Demonstrations are scripted ones,
# made here, or those of people: the folder kitchen_demos_multitask, or one with observations_seq.npy and its like.
# Usage: train_kitchen.sh [FOLDER [OUT [STEPS]]]; an empty first argument: scripted.
set -euo pipefail
cd "$(dirname "$0")/.."
demonstrations=${1:-}
out=${2:-data/kitchen}
steps=${3:-4000}
bid=${BID:-.venv/bin/bid}
simulating=${SIMULATING_BID:-.venv-benchmarks/bin/bid}

if [ -n "$demonstrations" ]; then
  [ -f "$out/dataset.npz" ] || "$bid" bench data "$demonstrations" --task kitchen --out "$out/dataset.npz"
else
  [ -f "$out/dataset.npz" ] || "$simulating" bench demos kitchen --out "$out/dataset.npz"
fi
# Actions are targets of joints, so they count from the middle of their ranges.
"$bid" train "$out/dataset.npz" --task kitchen --out "$out/training" --steps "$steps" --batch 256 \
  --set network.condition=256 action_reference=base
"$bid" policy export "$out/training" --task kitchen --out models/kitchen --sampling-steps 6
