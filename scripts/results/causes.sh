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
source scripts/results/flow_policies.sh
one=(onnx --action-horizon 1)

policy usual --set # weak: after a tenth of the steps
policy narrow --set 'network.widths=[16,32,64]'
policy wide --set 'network.widths=[48,96,192]' # a bundle may have 20 MB
for width in usual narrow wide; do bench "$width" "$width" vanilla,bid "${one[@]}"; done
bench no_weak usual bid "${one[@]}" --no-weak
for step in 100 2000; do
  policy "weak_$step" --weak-steps "$step" --set
  bench "weak_$step" "weak_$step" bid "${one[@]}"
done
