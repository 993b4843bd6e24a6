#!/usr/bin/env bash
# The policy of Franka Kitchen: data set, training, bundle. Resumable: run it again. Demonstrations are scripted ones,
# made here, or those of people: the folder kitchen_demos_multitask, or one with observations_seq.npy and its like.
# Usage: train_kitchen.sh [FOLDER [OUT [STEPS]]]; an empty first argument: scripted.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/train_robomimic.sh kitchen "$@" # the same steps and settings
