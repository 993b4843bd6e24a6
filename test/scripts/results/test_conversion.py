"""``scripts/results conversion``: every format is written once and read once, and each has a line of numbers."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest


@pytest.mark.long
@pytest.mark.timeout(240)
def test_each_conversion_has_a_line_and_nothing_is_left(root, tmp_path):
    command = [sys.executable, "scripts/results", "conversion", "--rows", "230", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=220, check=False)
    assert done.returncode == 0, done.stderr
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    names = ["zarr", "robomimic", "lerobot_v21", "lerobot_v30", "npz", "bag", "zarr"]
    assert [line[:2] for line in lines] == [list(pair) for pair in pairwise(names)]
    assert all(float(cell) > 0 for line in lines for cell in line[3:7])
    assert not (tmp_path / "out").exists()
