#!/usr/bin/env bash
# The runs behind docs/results/pusht-families.md: length of the observation history against prediction and action horizon.
# Resumable: run it again. Usage: scripts/results history pusht_cchi_v7_lowdim.npz [OUT [EPISODES]]
set -euo pipefail
cd "$(dirname "$0")/../.."
demonstrations=$1
out=${2:-runs/history}
episodes=${3:-100}
bid=${BID:-.venv/bin/bid}
mkdir -p "$out"

# A chunk of 5 or 10 actions; rows of the past fill the shape of a prediction, as in config/pusht_history.yaml.
for chunk in 5 10; do
  for history in 1 3 5 10; do
    name=h${history}_c$chunk
    sed "s/^name: .*/name: pusht_$name/; s/^observation_steps: 5 .*/observation_steps: $history/
      s/^horizon: 9 .*/horizon: $((history - 1 + chunk))/" config/pusht_history.yaml >"$out/$name.yaml"
    sed -i "s#schemas/task.json#$PWD/config/schemas/task.json#" "$out/$name.yaml"
    [ -f "$out/$name.npz" ] ||
      "$bid" bench data "$demonstrations" --task "$out/$name.yaml" --out "$out/$name.npz"
    if [ ! -d "$out/${name}_bundle" ]; then
      "$bid" train "$out/$name.npz" --task "$out/$name.yaml" --family vqbet --out "$out/$name" \
        --steps "${STEPS:-4000}" --set vqbet.sequential=false vqbet.offset_codes=drawn action_reference=base
      "$bid" policy export "$out/$name" --task "$out/$name.yaml" --out "$out/${name}_bundle"
    fi
    "$bid" bench pusht --task "$out/$name.yaml" --bundle "$out/${name}_bundle" --decoder vanilla --action-horizon 1,all --seed 11,12,13 \
      --episodes "$episodes" --runtime onnx --workers "${WORKERS:-2}" \
      --out "$out/runs_$name" >"$out/$name.md"
    echo "== $name done" >&2
  done
done
