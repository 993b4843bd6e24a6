"""How demonstrations of scripted operators are collected, whoever makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.bench.demonstrating import ATTEMPTS, demonstration, record
from bid_ros.bench.kitchen.catalogue import KITCHEN
from bid_ros.bench.operators import OPERATORS
from bid_ros.bench.robomimic.catalogue import TASKS
from bid_ros.bench.scene import SCENES
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task


@pytest.fixture
def task(root):
    return load_task(root / "config" / "kitchen.yaml")


def operator(task, fails=(), calls=None):
    """Return an operator that succeeds but with some seeds, and says which it was asked for."""

    def attempt(seed):
        if calls is not None:
            calls.append(seed)
        rows = 3 + seed % 2
        shown = [{item.name: np.full(item.size, float(seed)) for item in task.observation}] * rows
        return None if seed in fails else demonstration(task, seed, shown, [np.zeros(9)] * rows)

    return attempt


def test_seeds_that_fail_are_left_out(task, tmp_path):
    said = []
    dataset = record(task, operator(task, fails=(1,)), 3, tmp_path / "a.npz", lambda *numbers: said.append(numbers))
    dataset.validate(task)
    assert dataset.seeds.tolist() == [0, 2, 3] and dataset.labels == ("scripted",) * 3
    assert said == [(1, 1), (1, 2), (2, 3), (3, 4)]
    assert dataset.stamps_ns[:3].tolist() == [0, 80_000_000, 160_000_000]


def test_recording_goes_on_where_it_stopped(task, tmp_path):
    out, calls = tmp_path / "a.npz", []
    first = record(task, operator(task, fails=(0,)), 2, out, lambda *numbers: None)
    again = record(task, operator(task, calls=calls), 3, out, lambda *numbers: None)
    assert calls == [3], "neither what was recorded nor what failed is tried again"
    assert again.seeds.tolist() == [*first.seeds, 3]


def test_demonstrations_of_two_versions_of_a_simulator_are_not_joined(task, tmp_path):
    out, made = tmp_path / "a.npz", []
    record(task, operator(task), 1, out, lambda *numbers: None, simulator="robosuite 1.5.1")
    with pytest.raises(BidError, match=r"a\.parts holds .* made with simulator 'robosuite 1\.5\.1', not 'robosuite 1"):
        record(task, operator(task, calls=made), 2, out, lambda *numbers: None, simulator="robosuite 1.5.2")
    record(task, operator(task, calls=made), 2, out, lambda *numbers: None, simulator="robosuite 1.5.1")
    assert made == [1]


def test_an_older_folder_that_does_not_say_its_version_is_refused(task, tmp_path):
    record(task, operator(task), 1, tmp_path / "a.npz", lambda *numbers: None)
    (tmp_path / "a.parts" / "made_with.json").unlink()
    calls = []
    with pytest.raises(BidError, match=r"a\.parts holds demonstrations, but no made_with\.json says .*; valid is"):
        record(task, operator(task, calls=calls), 2, tmp_path / "a.npz", lambda *numbers: None)
    assert not calls


@pytest.mark.parametrize("count", [0, 10_001])
def test_a_count_that_is_not_valid(task, tmp_path, count):
    with pytest.raises(BidError, match=f"count is {count}; valid is 1 to 10000"):
        record(task, operator(task), count, tmp_path / "a.npz", lambda *numbers: None)


def test_too_few_that_succeed(task, tmp_path):
    fails = range(1, ATTEMPTS * 2)
    with pytest.raises(BidError, match="only 1 of 6 attempts at kitchen succeeded; 2 are wanted"):
        record(task, operator(task, fails), 2, tmp_path / "a.npz", lambda *numbers: None)


@pytest.mark.parametrize("fails", [(), (0,)])
@pytest.mark.parametrize("change", [{"name": "lift"}, {"rate_hz": 10.0}])
def test_what_an_earlier_call_made_of_another_task_is_not_taken(task, tmp_path, fails, change):
    record(task, operator(task, fails), 1, tmp_path / "a.npz", lambda *numbers: None)
    calls, other = [], replace(task, **change)
    with pytest.raises(BidError, match=r"a.parts holds .* made with .*task.*valid is another --out, or remove it"):
        record(other, operator(other, calls=calls), 2, tmp_path / "a.npz", lambda *numbers: None)
    assert not calls


def test_every_task_with_operators_is_a_bench():
    assert set(OPERATORS) == {KITCHEN, *TASKS} <= set(SCENES)
