#!/usr/bin/env bash
# Resolve requirements.in into requirements.lock. Usage: lock.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$1/bin/uv
# Style checkers that the message generators name but do not need, and a second OpenCV over the headless one.
skip='^ros-(jazzy-)?ament-(cmake-)?(uncrustify|cppcheck|cpplint|flake8|pep257)(-vendor)?==|test-msgs|^opencv-python=='
{
  echo "# Made by scripts/lock.sh from requirements.in."
  "$uv" pip compile --quiet --no-header --no-annotate --python-version 3.11 - < <(grep -vE '^torch==' requirements.in) | grep -vE "$skip"
  # Pinned by hand: pip takes the CPU build of it where one is offered, uv would take the CUDA one.
  grep -E '^torch==' requirements.in
} >requirements.lock.new
mv requirements.lock.new requirements.lock
