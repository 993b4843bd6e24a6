"""Bags as a data set: a source like any other (bid_ros/formats/bag.py)."""

from __future__ import annotations

import json
import weakref

import pytest

from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.formats import Options, convert, load_dataset, open_source
from bid_ros.recording.build_dataset import build_dataset


@pytest.fixture
def runs(make_run, tmp_path):
    """Two runs, three episodes, of which one failed."""
    folder = tmp_path / "runs"
    for name, episodes in (("first", 2), ("second", 1)):
        (folder / name).mkdir(parents=True)
        make_run(episodes, success=lambda index: index == 0).write(folder / name / "bag")
        (folder / name / "run.json").write_text(json.dumps({"task": "small"}))
    return folder


def test_bags_give_the_rows_of_the_data_set(runs, task):
    expected = build_dataset(sorted(runs.glob("*/bag")), task)
    assert load_dataset(runs, task).sha256 == expected.sha256
    assert load_dataset(runs / "first" / "bag", task).episodes == 1


def test_bags_become_a_data_set_of_lerobot_and_come_back(runs, task, tmp_path):
    source = open_source(runs, task)
    assert source.contents.lengths is None
    report = convert(source, tmp_path / "set", "lerobot_v30", Options("png"))
    assert report.episodes == 2
    assert any("decisions" in sentence for sentence in report.lost)
    assert load_dataset(tmp_path / "set", task).sha256 == build_dataset(sorted(runs.glob("*/bag")), task).sha256
    assert [item.success for item in open_source(tmp_path / "set").episodes()] == [True, True]


def test_reading_begins_at_any_episode(runs, task):
    source = open_source(runs, task)
    assert [item.seed for item in source.episodes(1)] == [item.seed for item in source.episodes()][1:]


def test_the_rows_of_one_episode_are_in_memory(make_run, task, tmp_path):
    make_run(6).write(tmp_path / "run" / "bag")
    images, name = [], task.cameras[0].name
    for episode in open_source(tmp_path / "run", task).episodes():
        images.append(weakref.ref(episode.observations[name].base))
        assert sum(image() is not None for image in images) <= 2, "this one, and at most the one before it"
    assert len(images) == 6


def test_bags_without_a_task_or_an_episode_are_refused(make_run, task, tmp_path, capsys):
    make_run(1, success=lambda index: False).write(tmp_path / "run" / "bag")
    with pytest.raises(RecordingError, match=r"holds bags, and no run\.json beside them names their task"):
        open_source(tmp_path / "run")
    with pytest.raises(RecordingError, match=r"none of 1 bags has a usable episode \(.*episode 0: left out: timeout"):
        list(open_source(tmp_path / "run", task).episodes())
    assert main(["data", "info", str(tmp_path / "run")]) == 2
    assert "does not say which task was recorded; give it with --task" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match="there is no bag in"):
        open_source(tmp_path / "empty", task, "bag")
