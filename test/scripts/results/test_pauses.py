"""``scripts/results pauses``: operators who never pause are otherwise the usual ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
from results.pauses import tireless

from bid_ros.bench.skill import draw_skill


def test_only_the_pauses_are_left_out():
    usual, own = (draw(np.random.default_rng(5)) for draw in (draw_skill, tireless))
    assert usual.pause > 0
    assert own == replace(usual, pause=0.0)


def test_a_task_without_operators_is_one_sentence(root, tmp_path):
    command = [sys.executable, str(root / "scripts" / "results"), "pauses", "pusht", str(tmp_path / "x.npz")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "invalid choice: 'pusht'" in done.stderr
