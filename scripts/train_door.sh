#!/usr/bin/env bash
# The policy of the bench's door from the human demonstrations: data set, training, bundle. Resumable: run it again.
# Usage: train_door.sh adroit_door_human.npz [OUT [STEPS]]
set -euo pipefail
cd "$(dirname "$0")/.."
demonstrations=$1
out=${2:-data/door}
steps=${3:-5000}
bid=${BID:-.venv/bin/bid}

[ -f "$out/dataset.npz" ] || "$bid" bench data "$demonstrations" --task door --out "$out/dataset.npz"
# Actions are targets of actuators, so they count from the middle of their ranges.
"$bid" train "$out/dataset.npz" --task door --out "$out/training" --steps "$steps" --batch 256 \
  --set network.condition=256 action_reference=base
"$bid" policy export "$out/training" --task door --out models/door --sampling-steps 6
