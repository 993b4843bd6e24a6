"""Bags as a data set: a source like any other (bid_ros/formats/bag.py)."""

from __future__ import annotations

import json
import shutil
import weakref

import pytest

from bid_msgs.msg import EpisodeEvent
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.formats import Options, chosen, convert, load_dataset, open_source
from bid_ros.recording.build_dataset import build_dataset
from bid_ros.recording.outcomes import ALL, FAILURE, SUCCESS
from bid_ros.recording.reader import BagReader


class Killed:
    """A source whose reader is killed before an episode; it says which messages of images were read until then."""

    def __init__(self, source, before: int) -> None:
        self._source, self._before = source, before
        self.contents, self.files, self.recall = source.contents, source.files, source.recall

    def episodes(self, start: int = 0, names=None):
        for number, episode in enumerate(self._source.episodes(start), start):
            if number == self._before:
                raise KeyboardInterrupt
            yield episode


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


@pytest.mark.parametrize("wanted", [ALL, FAILURE])
def test_episodes_that_failed_are_taken_if_they_are_wanted(runs, task, wanted):
    every = list(chosen(open_source(runs, task), ALL).episodes())
    assert [item.success for item in every] == [True, False, True]
    found = chosen(open_source(runs, task), wanted)
    assert [item.success for item in found.episodes()] == ([True, False, True] if wanted == ALL else [False])
    left = [f"{runs}/{name}/bag: episode 0: left out: success" for name in ("first", "second")]
    assert found.reasons == ([] if wanted == ALL else left)
    with pytest.raises(RecordingError, match="of outcome 'lost' do not exist; valid are success, failure, all"):
        chosen(open_source(runs, task), "lost")


def test_failures_of_a_data_set_are_known_where_it_says_them(runs, task, tmp_path):
    convert(chosen(open_source(runs, task), ALL), tmp_path / "set.zarr", "zarr")
    whole = open_source(tmp_path / "set.zarr")
    assert [item.success for item in chosen(whole, FAILURE).episodes()] == [False]
    assert [item.success for item in chosen(whole, SUCCESS).episodes(1)] == [True]
    convert(open_source(runs, task), tmp_path / "good.zarr", "zarr")
    with pytest.raises(RecordingError, match="has no episode that failed"):
        list(chosen(open_source(tmp_path / "good.zarr"), FAILURE).episodes())


def test_what_a_person_discarded_or_took_back_is_in_no_data_set(make_run, task, tmp_path):
    run = make_run(2)
    for _, _, message in run.items:
        if isinstance(message, EpisodeEvent) and message.kind == EpisodeEvent.END and message.episode == 1:
            message.success, message.outcome = False, "discarded"
    run.write(tmp_path / "run" / "bag")
    found = chosen(open_source(tmp_path / "run", task), ALL)
    assert len(list(found.episodes())) == 1 and found.reasons[0].endswith("episode 1: left out: discarded")


def test_a_conversion_that_was_killed_reads_no_bag_again(make_run, task, tmp_path, monkeypatch):
    for name in "abc":
        make_run(2).write(tmp_path / "runs" / name / "bag")
    source, opened = open_source(tmp_path / "runs", task), []
    whole = convert(source, tmp_path / "whole.zarr", "zarr")
    for before in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            convert(Killed(open_source(tmp_path / "runs", task), before), tmp_path / "set.zarr", "zarr")
    monkeypatch.setattr("bid_ros.recording.reader.BagReader.messages", told(BagReader.messages, opened))
    report = convert(open_source(tmp_path / "runs", task), tmp_path / "set.zarr", "zarr")
    assert (report.resumed, report.episodes) == (3, 6) and report.rows == whole.rows
    begun = [path.parent.name for path in opened]
    assert begun[:2] == ["b", "b"], "its events, then its episode that was not written"
    seeds = [item.seed for item in open_source(tmp_path / "set.zarr").episodes()]
    assert seeds == [item.seed for item in source.episodes()]


def told(function, opened):
    def call(reader, *arguments):
        opened.append(reader.path)
        return function(reader, *arguments)

    return call


def test_parts_of_other_bags_are_not_mixed_in(runs, make_run, task, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        convert(Killed(open_source(runs, task), 1), tmp_path / "set.zarr", "zarr", origin="runs")
    make_run().write(runs / "before" / "bag")
    with pytest.raises(RecordingError, match="has the parts of another conversion"):
        convert(open_source(runs, task), tmp_path / "set.zarr", "zarr", origin="runs")


def test_parts_of_what_the_bags_no_longer_hold_are_not_mixed_in(runs, make_run, task, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        convert(Killed(open_source(runs, task), 1), tmp_path / "set.zarr", "zarr", origin="runs")
    shutil.rmtree(runs / "first" / "bag")
    make_run(2, success=lambda index: index == 1).write(runs / "first" / "bag")
    with pytest.raises(RecordingError, match="has the parts of another conversion"):
        convert(open_source(runs, task), tmp_path / "set.zarr", "zarr", origin="runs")


def test_parts_of_another_outcome_are_not_mixed_in(make_run, task, tmp_path):
    make_run(3, success=lambda index: index != 2).write(tmp_path / "run" / "bag")
    convert(chosen(open_source(tmp_path / "run", task), ALL), tmp_path / "all.zarr", "zarr")
    good, bad = (chosen(open_source(tmp_path / "all.zarr"), wanted) for wanted in (SUCCESS, FAILURE))
    good.files, good.recall = (), None
    with pytest.raises(KeyboardInterrupt):
        convert(Killed(good, 1), tmp_path / "set.zarr", "zarr", origin="all")
    with pytest.raises(RecordingError, match="has the parts of another conversion"):
        convert(bad, tmp_path / "set.zarr", "zarr", origin="all")


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
