"""Bags as a data set: a source like any other (bid_ros/formats/bag.py)."""

from __future__ import annotations

import json
import shutil
import weakref

import pytest
from rosbags import rosbag1

from bid_msgs.msg import EpisodeEvent
from bid_ros.cli import main
from bid_ros.commands.tasks import recorded_task
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.formats import Options, build_dataset, chosen, convert, load_dataset, mapped, open_source
from bid_ros.formats.bag import BagSource, bags_below
from bid_ros.recording.outcomes import ALL, FAILURE, SUCCESS
from bid_ros.recording.reader import BagReader


def killed(episode: int):
    """What a conversion calls after each episode: it is killed behind one of them."""

    def progress(episodes: int, rows: int) -> None:
        if episodes == episode:
            raise KeyboardInterrupt

    return progress


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
    reports = []
    found = BagSource(bags_below(runs), task, wanted, reports.append)
    assert [item.success for item in found.episodes()] == ([True, False, True] if wanted == ALL else [False])
    assert [report.path for report in reports] == [f"{runs}/{name}/bag" for name in ("first", "second")]
    left = () if wanted == ALL else ("episode 0: left out: success",)
    assert [report.reasons for report in reports] == [left, left]
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
    reports = []
    found = BagSource(bags_below(tmp_path / "run"), task, ALL, reports.append)
    assert len(list(found.episodes())) == 1 and reports[0].reasons == ("episode 1: left out: discarded",)


def test_a_conversion_that_was_killed_reads_no_bag_again(make_run, task, tmp_path, monkeypatch):
    for name in "abc":
        make_run(2).write(tmp_path / "runs" / name / "bag")
    source, opened = open_source(tmp_path / "runs", task), []
    whole = convert(source, tmp_path / "whole.zarr", "zarr")
    for before in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            convert(open_source(tmp_path / "runs", task), tmp_path / "set.zarr", "zarr", progress=killed(before))
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


def test_a_bag_that_comes_in_between_is_read_and_the_others_are_not_again(runs, make_run, task, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        convert(open_source(runs, task), tmp_path / "set.zarr", "zarr", None, killed(2), "runs")
    make_run().write(runs / "before" / "bag")
    opened = []
    monkeypatch.setattr("bid_ros.recording.reader.BagReader.messages", told(BagReader.messages, opened))
    report = convert(open_source(runs, task), tmp_path / "set.zarr", "zarr", origin="runs")
    assert (report.resumed, report.episodes) == (2, 3)
    assert [path.parent.name for path in opened] == ["before", "before", "second", "second"], "it may go on"
    assert load_dataset(tmp_path / "set.zarr", task).sha256 == load_dataset(runs, task).sha256
    assert not (tmp_path / ".set.zarr.parts").exists()


def test_parts_of_what_the_bags_no_longer_hold_are_not_mixed_in(runs, make_run, task, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        convert(open_source(runs, task), tmp_path / "set.zarr", "zarr", None, killed(1), "runs")
    shutil.rmtree(runs / "first" / "bag")
    make_run(2, success=lambda index: index == 1).write(runs / "first" / "bag")
    report = convert(open_source(runs, task), tmp_path / "set.zarr", "zarr", origin="runs")
    assert report.resumed == 0
    assert load_dataset(tmp_path / "set.zarr", task).sha256 == load_dataset(runs, task).sha256


def test_a_mapped_bag_that_changed_is_read_again(make_run, task, tmp_path):
    make_run(2).write(tmp_path / "run" / "bag")
    with pytest.raises(KeyboardInterrupt):
        convert(mapped(open_source(tmp_path / "run", task), task), tmp_path / "set.zarr", "zarr", progress=killed(1))
    shutil.rmtree(tmp_path / "run" / "bag")
    make_run(3).write(tmp_path / "run" / "bag")
    report = convert(mapped(open_source(tmp_path / "run", task), task), tmp_path / "set.zarr", "zarr")
    assert (report.resumed, report.episodes) == (0, 3)


def test_parts_of_another_outcome_are_not_mixed_in(make_run, task, tmp_path):
    make_run(3, success=lambda index: index != 2).write(tmp_path / "run" / "bag")
    convert(chosen(open_source(tmp_path / "run", task), ALL), tmp_path / "all.zarr", "zarr")
    good, bad = (chosen(open_source(tmp_path / "all.zarr"), wanted) for wanted in (SUCCESS, FAILURE))
    with pytest.raises(KeyboardInterrupt):
        convert(good, tmp_path / "set.zarr", "zarr", None, killed(1), "all")
    report = convert(bad, tmp_path / "set.zarr", "zarr", origin="all")
    assert (report.resumed, report.episodes) == (0, 1)
    assert [item.success for item in open_source(tmp_path / "set.zarr").episodes()] == [False]


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
    with pytest.raises(RecordingError, match=r"has a usable episode for task 'small' \(.*episode 0: left out: timeout"):
        list(open_source(tmp_path / "run", task).episodes())
    assert main(["data", "info", str(tmp_path / "run")]) == 2
    assert "does not say which task was recorded; give it with --task" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match="there is no bag in"):
        open_source(tmp_path / "empty", task, "bag")


def test_a_single_file_and_a_folder_of_files_are_bags(runs, task, tmp_path):
    bag = runs / "first" / "bag"
    assert load_dataset(bag / "bag_0.mcap", task).sha256 == load_dataset(bag, task).sha256
    loose = tmp_path / "loose"
    loose.mkdir()
    for name in ("a", "b"):
        shutil.copy(runs / "second" / "bag" / "bag_0.mcap", loose / f"{name}.mcap")
        with rosbag1.Writer(loose / f"{name}.bag"):
            pass
    (loose / "notes.txt").write_text("no bag")
    every = [loose / name for name in ("a.bag", "a.mcap", "b.bag", "b.mcap")]
    assert bags_below(loose) == every and bags_below(every[0]) == every[:1] and not bags_below(loose / "notes.txt")
    assert load_dataset(loose, task).episodes == 2


def test_the_task_of_a_file_in_the_folder_of_its_bag_is_known(make_run, task, tmp_path):
    bag = make_run().write(tmp_path / "run" / "bag", about={"task": "small"})
    assert recorded_task([bag / "bag_0.mcap"]) == recorded_task([bag]) == "small"
    (tmp_path / "run" / "run.json").write_text(json.dumps({"task": "other"}))
    assert recorded_task([bag / "bag_0.mcap"]) == recorded_task([bag]) == "other"


def test_stamps_of_simulated_time_give_the_same_rows(make_run, task, tmp_path):
    """Stamps count from the begin of a simulation; the recorder's clock is that of the wall, or the same."""
    wall = 1_700_000_000 * NANOSECONDS
    for name, by in (("wall", wall), ("simulated", 0)):
        run = make_run(start_ns=100 * NANOSECONDS)
        run.items = [(received + by, topic, message) for received, topic, message in run.items]
        run.write(tmp_path / name)
    one, other = (load_dataset(tmp_path / name, task) for name in ("wall", "simulated"))
    assert one.sha256 == other.sha256 and one.rows > 10
    assert one.stamps_ns[0] < 101 * NANOSECONDS


def test_a_conversion_says_which_bags_and_episodes_it_leaves_out(runs, tmp_path, capsys, task):
    damaged = runs / "third" / "bag"
    damaged.mkdir(parents=True)
    (damaged / "bag_0.mcap").write_bytes(b"junk" * 100)
    source = open_source(runs, task)
    assert convert(source, tmp_path / "set", "zarr").episodes == 2
    first, second = source.reasons
    assert first.startswith(f"{runs / 'first' / 'bag'}: episode 1: left out: timeout")
    assert second.startswith(f"{damaged}: ") and "is not an MCAP recording" in second
