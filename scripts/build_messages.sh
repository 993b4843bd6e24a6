#!/usr/bin/env bash
# Build bid_msgs into the virtual environment of the ROS 2 wheels. Usage: build_messages.sh VENV BUILD_DIR
set -euo pipefail
venv=$(cd "$1" && pwd)
build=$2
root=$(cd "$(dirname "$0")/.." && pwd)
python=$venv/bin/python
# Some wheels name the include folders of the machine they were built on; CMake refuses paths that do not exist.
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
numpy_include=$("$python" -c 'import numpy; print(numpy.get_include())')
grep -rlE '/opt/python/[^";]*' "$venv/share" --include='*Export.cmake' 2>/dev/null | while read -r file; do
  sed -E -i "s#/opt/python/[^\";]*numpy[^\";]*#$numpy_include#g; s#/opt/python/[^\";]*include/python[0-9.]*#$include#g" "$file"
done || true
export PATH="$venv/bin:$PATH" AMENT_PREFIX_PATH="$venv" CMAKE_PREFIX_PATH="$venv" VIRTUAL_ENV="$venv"
export LD_LIBRARY_PATH="$venv/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cmake -S "$root/bid_msgs" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$venv" \
  -DPython3_EXECUTABLE="$python" -DPYTHON_EXECUTABLE="$python" -DBUILD_TESTING=OFF >"$build.log" 2>&1 \
  && cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 && cmake --install "$build" >>"$build.log" 2>&1 \
  || { tail -n 30 "$build.log" >&2; echo "building bid_msgs failed; the whole log is $build.log" >&2; exit 1; }
