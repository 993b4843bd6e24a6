#!/usr/bin/env bash
# Some ROS wheels name the include folders of the machine they were built on; CMake refuses paths that do not exist.
# Usage: repair_wheels.sh VENV
set -euo pipefail
include=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
numpy_include=$("$1/bin/python" -c 'import numpy; print(numpy.get_include())')
{ grep -rlE '/opt/python/[^";]*' "$1/share" --include='*Export.cmake' || true; } | while read -r file; do
  sed -E -i "s#/opt/python/[^\";]*numpy[^\";]*#$numpy_include#g; s#/opt/python/[^\";]*include/python[0-9.]*#$include#g" "$file"
done
