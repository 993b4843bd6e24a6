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
source scripts/results/flow_policies.sh
late=(--action-horizon 4 --delay 0,1,2,3,4)

policy flow --set
policy prefix --simulated-delay 4 --set
policy roll --simulated-delay 4 --roll-forward --set
[ -d "$out/head" ] || "$bid" policy correct "$out/bundle_flow" "$out/pusht.npz" --out "$out/head"
bench flow flow vanilla,bid,bid+delay onnx "${late[@]}"
bench prefix prefix vanilla,bid onnx "${late[@]}"
bench roll roll vanilla,bid onnx "${late[@]}"
bench head flow vanilla,bid onnx "${late[@]}" --correction "$out/head"
bench rtc flow rtc torch "${late[@]}" # it needs gradients
