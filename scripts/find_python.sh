#!/usr/bin/env bash
# Print the interpreter of a version of Python, from the path or pyenv; exit status 1 where there is none.
# Usage: find_python.sh 3.12
for python in "python$1" ~/.pyenv/versions/"$1".*/bin/python; do
  "$python" -c "import sys; print(sys.executable); sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && exit 0
done
exit 1
