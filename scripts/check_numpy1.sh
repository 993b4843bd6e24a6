#!/usr/bin/env bash
# Image conversion with NumPy 1.26, as on Ubuntu 24.04's ROS; the suite runs with NumPy 2. Usage: check_numpy1.sh [VENV]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-}
if [ -z "$venv" ]; then
  venv=$(mktemp -d)
  trap 'rm -rf "$venv"' EXIT
fi
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install -q 'numpy==1.26.4' 'opencv-python-headless<5' pytest pyyaml scipy
"$venv/bin/python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir . --noconftest test/cameras/test_image.py
