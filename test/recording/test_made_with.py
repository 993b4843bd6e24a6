"""Folders of demonstrations that say with what they were made."""

from dataclasses import replace

import pytest

from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.recording.made_with import MADE_WITH, keep_made_with


@pytest.fixture
def task(root):
    return load_task(root / "config" / "kitchen.yaml")


@pytest.fixture
def folder(task, tmp_path):
    keep_made_with(tmp_path / "a.parts", task, simulator="robosuite 1.5.1")
    (tmp_path / "a.parts" / "0.failed").touch()
    return tmp_path / "a.parts"


def test_the_same_again_goes_on(folder, task):
    before = (folder / MADE_WITH).read_bytes()
    keep_made_with(folder, task, simulator="robosuite 1.5.1")
    assert (folder / MADE_WITH).read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "more", "said"),
    [
        ({"name": "lift"}, {}, "task 'kitchen', not 'lift'"),
        ({"rate_hz": 10.0}, {}, "settings of the task '[0-9a-f]{12}', not '[0-9a-f]{12}'"),
        ({"episode_timeout": 7.0}, {}, "settings of the task"),
        ({}, {"simulator": "robosuite 1.5.2"}, r"simulator 'robosuite 1\.5\.1', not 'robosuite 1\.5\.2'"),
        ({}, {"operators": "no-pauses"}, "operators the usual, not 'no-pauses'"),
    ],
)
def test_something_else_is_refused(folder, task, changes, more, said):
    with pytest.raises(BidError, match=rf"a\.parts holds .* made with {said}.*; valid is another --out, or remove it"):
        keep_made_with(folder, replace(task, **changes), **{"simulator": "robosuite 1.5.1"} | more)


def test_another_version_of_this_package_is_refused(folder, task, monkeypatch):
    monkeypatch.setattr("bid_ros.recording.made_with.installed_version", lambda name: "9.0.0")
    with pytest.raises(BidError, match=r"made with bid_ros '.*', not '9\.0\.0'"):
        keep_made_with(folder, task, simulator="robosuite 1.5.1")


@pytest.mark.parametrize("content", [None, "", "[]", '{"task": '])
def test_a_folder_that_does_not_say_is_refused(folder, task, content):
    (folder / MADE_WITH).unlink() if content is None else (folder / MADE_WITH).write_text(content)
    with pytest.raises(BidError, match=r"a\.parts holds demonstrations, but no made_with\.json says with what"):
        keep_made_with(folder, task, simulator="robosuite 1.5.1")


def test_a_folder_in_which_nothing_was_kept_is_a_new_one(task, tmp_path):
    (tmp_path / f".{MADE_WITH}.part").touch()  # a call was ended while it wrote
    keep_made_with(tmp_path, task)
    assert (tmp_path / MADE_WITH).exists()
