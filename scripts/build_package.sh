#!/usr/bin/env bash
# Build a package of messages into the virtual environment of the ROS 2 wheels. Usage: build_package.sh VENV SOURCE
set -euo pipefail
venv=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
python=$venv/bin/python
build=$root/.build/$(basename "$source")-$(cksum <<<"$venv" | cut -d' ' -f1)
export PATH="$venv/bin:$PATH" AMENT_PREFIX_PATH="$venv" CMAKE_PREFIX_PATH="$venv" VIRTUAL_ENV="$venv"
export LD_LIBRARY_PATH="$venv/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# Most of the time goes into reading the same headers again, so all files of a library are compiled as one.
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$venv" -DBUILD_TESTING=OFF \
  -DPython3_EXECUTABLE="$python" -DPYTHON_EXECUTABLE="$python" \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 >"$build.log" 2>&1 \
  && cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 && cmake --install "$build" >>"$build.log" 2>&1 \
  || { tail -n 30 "$build.log" >&2; echo "building $source failed; the whole log is $build.log" >&2; exit 1; }
