#!/usr/bin/env bash
# Mutation check: change the decoders, the envelope, the watchdog and the deadlines in some two thousand small ways, run
# their tests on each, and list the changes that no test notices. 6 to 12 minutes on one core. Resumable: run it again.
# What survived is tried again. What was killed is not until its function changes, even if the test that killed it is
# gone: remove .build/mutation to begin anew.
# Usage: mutation.sh [VENV]; exit status 1 if less than 90 % were killed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${1:-.venv}/bin/python
[ -x "$python" ] || { echo "error: '$python' does not exist; valid is the environment of make test" >&2; exit 2; }
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
work=.build/mutation
tree=$work/tree

if [ ! -x $work/venv/bin/mutmut ]; then
  "$python" -m venv --without-pip $work/venv
  scripts/uv.sh pip install --quiet --python $work/venv/bin/python mutmut==3.8.1
fi
# With the folder of Pinocchio, which a .pth file names there: Python reads such files of its own site alone.
{ echo "$site"; ls -d "$site"/cmeel.prefix/lib/python3.*/site-packages 2>/dev/null || true; } \
  >"$(echo $work/venv/lib/python3.*/site-packages)/project.pth"

# The working tree, without what was deleted and its conftest.py: that imports ROS, which is not needed here.
mkdir -p $tree
rm -rf $tree/{bid_ros,test,docs} $tree/mutants/{test,mutmut-stats.json}
git ls-files -z --cached --others --exclude-standard bid_ros bid_msgs config models test docs/reference/decoders.md \
  | { xargs -0 ls -d 2>/dev/null || true; } | tar -c --verbatim-files-from -T - | tar -x -C $tree
cat >$tree/test/conftest.py <<'EOF'
from pathlib import Path

import pytest


@pytest.fixture
def root():
    return Path(__file__).resolve().parent.parent
EOF
# Tests that measure time would kill mutants on a busy computer.
cat >$tree/setup.cfg <<'EOF'
[mutmut]
source_paths = bid_ros
only_mutate =
    bid_ros/decoding/*.py
    bid_ros/safety/bound.py
    bid_ros/safety/envelope.py
    bid_ros/safety/motion.py
    bid_ros/safety/watchdog.py
    bid_ros/core/deadline.py
also_copy =
    bid_msgs
    config
    models
    docs
pytest_add_cli_args =
    --deselect
    test/safety/test_envelope.py::test_a_check_is_a_small_part_of_a_decision
    --ignore
    test/decoding/test_bench_select.py
pytest_add_cli_args_test_selection =
    test/decoding
    test/safety
    test/core/test_deadline.py
use_git_change_detection = false
track_dependencies = false

[tool:pytest]
pythonpath = test
addopts = -q --import-mode=importlib
timeout = 60
EOF

cd $tree
"$root/scripts/mutation_report.py" forget mutants
nice -n 19 ../venv/bin/mutmut run --max-children "${CHILDREN:-1}" </dev/null >../log 2>&1 \
  || { tail -c 3000 ../log | tr '\r' '\n' >&2; exit 2; }
"$root/scripts/mutation_report.py" report mutants
