#!/usr/bin/env bash
# The policy of a task of robomimic: data set, training, bundle. Resumable: run it again. Demonstrations are scripted
# ones, made here, or those of people: robomimic's low_dim_v15.hdf5.
# Usage: train_robomimic.sh TASK [low_dim_v15.hdf5 [OUT [STEPS]]]; an empty second argument: scripted.
set -euo pipefail
cd "$(dirname "$0")/.."
task=$1
demonstrations=${2:-}
out=${3:-data/$task}
# As the shipped policies, of which those of Lift and Can came first.
case $task in lift | can) steps=${4:-4000} ;; *) steps=${4:-16000} ;; esac
settings=(network.condition=256 action_reference=base)
case $task in kitchen | tool_hang) settings+=(augment.history=0.5) ;; esac
bid=${BID:-.venv/bin/bid}
simulating=${SIMULATING_BID:-.venv-benchmarks/bin/bid}

if [ -n "$demonstrations" ]; then
  [ -f "$out/dataset.npz" ] || "$bid" bench data "$demonstrations" --task "$task" --out "$out/dataset.npz"
else
  [ -f "$out/dataset.npz" ] || "$simulating" bench demos "$task" --out "$out/dataset.npz"
fi
# Actions are poses in the world's frame, as published; those of the kitchen are joints.
"$bid" train "$out/dataset.npz" --task "$task" --out "$out/training" --steps "$steps" --batch 256 \
  --set "${settings[@]}"
"$bid" policy export "$out/training" --task "$task" --out "models/$task" --sampling-steps 6
