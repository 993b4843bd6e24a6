#!/usr/bin/env bash
# Remove from a virtual environment what no program of ours opens, half a gigabyte. Usage: prune.sh VENV
set -euo pipefail
for site in "$1"/lib/python3.*/site-packages; do
  # Headers, static libraries and CMake files of Boost and Pinocchio: nothing is compiled against them.
  rm -rf "$site"/cmeel.prefix/include "$site"/cmeel.prefix/lib/*.a "$site"/cmeel.prefix/lib/cmake
  # OpenVINO's drivers of devices that no runtime here asks for; it computes on the CPU.
  rm -f "$site"/openvino/libs/libopenvino_intel_{gpu,npu}_plugin.so "$site"/openvino/libs/cache.json
  # Meshes of the Franka that its model for MuJoCo does not name.
  for mesh in "$site"/franky_sim/assets/meshes/*; do
    grep -q "\"${mesh##*/}\"" "$site/franky_sim/assets/fr3.xml" || rm -f "$mesh"
  done
  # The tests of the packages themselves.
  find "$site" -type d -name tests -prune -exec rm -rf {} +
done
# A wheel cannot hold links, so libraries come once for each of their names. One copy is enough.
find "$1"/lib "$1"/lib/python3.*/site-packages/cmeel.prefix/lib -maxdepth 1 -type f -name 'lib*.so*' -size +100k \
  -exec sha256sum {} + | sort | while read -r sum file; do
  if [ "$sum" = "${last:-}" ]; then ln -f "$kept" "$file"; else last=$sum kept=$file; fi
done
