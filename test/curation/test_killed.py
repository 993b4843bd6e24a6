"""An edit that is killed at any step loses nothing: what was recorded is there, or comes back, byte by byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from curation.conftest import files, indices
from fork_server import fork_server

from bid_ros.core.errors import RecordingError
from bid_ros.curation.catalog import find_bags
from bid_ros.curation.edit import merge, split, trim
from bid_ros.curation.trash import delete, restore

PROGRAM = str(Path(__file__).with_name("killed_edit.py"))
KILLED = -9
MOST_STEPS = 60


@pytest.fixture
def bag(make_run, tmp_path):
    return make_run(episodes=3, seconds=0.2).write(tmp_path / "work" / "bag")


def after_each_kill(tmp_path, kind, bag, out):
    """Yield after an edit that was killed before its first, second, ... step; what was there is put back before."""
    work, kept = tmp_path / "work", tmp_path / "kept"
    shutil.copytree(work, kept)
    for step in range(MOST_STEPS):
        process = fork_server().start(PROGRAM, [kind, str(bag), str(out), str(step)])
        said, _ = process.communicate()
        assert process.returncode in (0, KILLED), said
        if process.returncode == KILLED:
            yield
        shutil.rmtree(work)
        shutil.copytree(kept, work)
        if process.returncode == 0:
            assert step > 1, "the edit was never killed"
            return
    raise AssertionError(f"an edit with more than {MOST_STEPS} steps")


@pytest.mark.parametrize(("number", "left"), [(1, [0, 2]), (None, None)])
def test_a_delete(tmp_path, bag, number, left):
    before = files(bag)
    for _ in after_each_kill(tmp_path, "delete" if left else "delete whole", bag, bag):
        if not bag.exists() or files(bag) != before:
            restore(bag)
        assert files(bag) == before
    delete(bag, number)
    assert (indices(bag) if bag.exists() else None) == left
    assert restore(bag).number == number and files(bag) == before


def test_a_restore(tmp_path, bag):
    before = files(bag)
    delete(bag, 1)
    for _ in after_each_kill(tmp_path, "restore", bag, bag):
        if not bag.exists() or files(bag) != before:
            restore(bag)
        assert files(bag) == before


def test_a_trim(tmp_path, bag):
    before, out = files(bag), bag.parent / "part"
    for _ in after_each_kill(tmp_path, "trim", bag, out):
        assert files(bag) == before
        assert find_bags([bag.parent]) == [bag], "half a bag is no bag"
    trim(bag, 0, 0.0, 0.1, out, {})
    assert indices(out) == [0]


def test_a_split(tmp_path, make_run):
    bag = make_run(episodes=2, seconds=0.2).write(tmp_path / "work" / "bag")
    before, out = files(bag), bag.parent / "parts"
    counts = []
    for _ in after_each_kill(tmp_path, "split", bag, out):
        assert files(bag) == before
        done = sorted(out.glob("episode_*"))
        counts.append(len(done))
        if counts[-2:] == [0, 1]:
            assert indices(done[0]) == [0], "the part is whole"
            with pytest.raises(RecordingError, match="episode_000 exists already; valid is a new folder"):
                split(bag, out, {})
    assert {0, 1} <= set(counts)


def test_a_merge(tmp_path, bag):
    parts = split(bag, bag.parent / "parts", {})
    before, out = [files(part) for part in parts], bag.parent / "whole"
    for _ in after_each_kill(tmp_path, "merge", bag.parent / "parts", out):
        assert [files(part) for part in parts] == before
        assert not out.exists()
    merge(parts, out, {})
    assert indices(out) == [0, 1, 2]
