#!/usr/bin/env bash
# Run uv, the version pinned here; the first use installs it into .build. Usage: uv.sh ARGUMENT...
set -euo pipefail
version=0.13.9
folder=$(cd "$(dirname "$0")/.." && pwd)/.build/uv-$version
if [ ! -x "$folder/bin/uv" ]; then
  "${PYTHON:-python3}" -m pip install --quiet --no-deps --target "$folder.part" "uv==$version"
  mv -T "$folder.part" "$folder"
fi
UV_PYTHON_DOWNLOADS=never exec "$folder/bin/uv" "$@"
