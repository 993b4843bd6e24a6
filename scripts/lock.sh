#!/usr/bin/env bash
# Resolve requirements/*.in into one lock file each, for Python 3.11 and 3.12 at once. All purposes are resolved together
# first, so that they share one version of each package. Locked versions stay unless --upgrade is given.
# Usage: lock.sh [--upgrade]
set -euo pipefail
cd "$(dirname "$0")/../requirements"
# Style checkers that the message generators name but do not need, a second OpenCV over the headless one, and a viewer.
skip='^ros-(jazzy-)?ament-(cmake-)?(uncrustify|cppcheck|cpplint|flake8|pep257)(-vendor)?==|test-msgs|^opencv-python==|^mujoco-studio=='
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Torch is kept out of what is resolved: pip installs it, as train.in says. So are openpi's packages, see develop.in.
resolve() { ../scripts/uv.sh pip compile --quiet --universal --no-header --no-annotate "$@"; }
# Only Python's version is left to ask for at the time of installation.
lines() { grep -vE "$skip|sys_platform == 'win32'" | sed -E "/python_full_version < '3\.1[23]'/!s/ ; .*//"; }

grep -v '^torch==' train.in >"$work/train.in"
grep -v '^openpi-' develop.in >"$work/develop.in"
[ "${1:-}" = --upgrade ] || sort -u {run,train,bench,data,view,develop}.lock | grep -vE '^(#|torch|openpi-)' >"$work/all"
touch "$work/all"
resolve --python-version 3.11 run.in "$work/train.in" bench.in data.in view.in "$work/develop.in" -o "$work/all" >/dev/null
for purpose in run train bench data view develop; do
  input=$purpose.in
  [ -f "$work/$input" ] && input=$work/$input
  { echo "# Made by scripts/lock.sh from $purpose.in."; resolve --python-version 3.11 -c "$work/all" "$input" | lines; } >"$work/$purpose.lock"
done
grep '^torch==' train.in >>"$work/train.lock"
grep '^openpi-' develop.in >>"$work/develop.lock"
{
  echo "# Made by scripts/lock.sh from ros.in, beside noble.txt."
  grep -vE "^($(grep -oE '^[a-z-]+' noble.txt | paste -sd'|'))==" "$work/all" >"$work/others"
  resolve --python-version 3.12 -c "$work/others" --override noble.txt ros.in | lines | grep -vFxf noble.txt
} >"$work/ros.lock"
{
  echo "# Made by scripts/lock.sh from benchmarks.in: an environment of its own."
  resolve --python-version 3.11 --override robosuite.txt benchmarks.in | grep -v "sys_platform == 'none'"
} >"$work/benchmarks.lock"
mv "$work"/*.lock .
