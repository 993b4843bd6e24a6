#!/usr/bin/env bash
# Measure everything the documentation says about GPUs, in less than ten minutes, and write docs/results/gpu.json. It
# needs a GPU and a Python with torch, onnx and what bid_ros requires: $PYTHON, else .venv, else python3.
# Usage: gpu_report.sh [options of gpu_report.py]
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$(command -v "$python")" ] || python=python3
PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" exec timeout 600 "$python" "$root/scripts/gpu_report.py" "$@"
