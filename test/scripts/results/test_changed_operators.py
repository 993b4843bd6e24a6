"""``scripts/results changed-operators``: the operators are otherwise the usual ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from results.changed_operators import COMPLETE, in_one_order, tireless

from bid_ros.bench.kitchen.catalogue import EPISODE_GOALS, GOALS
from bid_ros.bench.kitchen.demonstrating import draw_goals
from bid_ros.bench.skill import draw_skill


def test_only_the_pauses_are_left_out():
    usual, own = (draw(np.random.default_rng(5)) for draw in (draw_skill, tireless))
    assert usual.pause > 0
    assert own == replace(usual, pause=0.0)


def test_the_order_is_always_the_same_and_the_rest_is_drawn_as_usual():
    usual, own = np.random.default_rng(5), np.random.default_rng(5)
    assert draw_goals(usual) != in_one_order(own) == COMPLETE
    assert usual.random() == own.random()
    assert len(COMPLETE) == EPISODE_GOALS and GOALS.keys() > set(COMPLETE)


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        (("no-pauses", "pusht"), 2, "invalid choice: 'pusht'"),
        (("one-order", "lift"), 1, "task 'lift' has no order of goals to keep; valid is 'kitchen'"),
    ],
)
def test_a_task_that_cannot_be_changed_is_one_sentence(root, tmp_path, given, status, said):
    command = [sys.executable, str(root / "scripts" / "results"), "changed-operators", *given, str(tmp_path / "x.npz")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    assert said in done.stderr
