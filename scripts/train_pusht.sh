#!/usr/bin/env bash
# The Push-T policy of the bench from the human demonstrations: data set, training, bundle. Resumable: run it again.
# Usage: train_pusht.sh pusht_cchi_v7_lowdim.npz [OUT [STEPS]]
set -euo pipefail
cd "$(dirname "$0")/.."
demonstrations=$1
out=${2:-data/pusht}
steps=${3:-8000}
bid=${BID:-.venv/bin/bid}

[ -f "$out/dataset.npz" ] || "$bid" bench data "$demonstrations" --out "$out/dataset.npz"
# Actions are points on the table, so they count from its corner. Why these values: docs/results/pusht.md.
"$bid" train "$out/dataset.npz" --task pusht --out "$out/training" --steps "$steps" --batch 256 \
  --set network.condition=256 action_reference=base diffusion.prediction=epsilon augment.state=0.03 augment.history=0.5
"$bid" policy export "$out/training" --task pusht --out models/pusht --sampling-steps 6
