"""How many episodes bags hold, before a row is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bid_msgs.msg import EpisodeEvent
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.recording.reader import BagReader
from bid_ros.recording.recorded_count import RecordedCount, count_recorded

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "bags" / "franka_place"


def test_the_episodes_of_several_bags_and_how_many_succeeded(make_run, task, tmp_path):
    three = make_run(3, success=lambda index: index != 1).write(tmp_path / "three")
    one = make_run(1).write(tmp_path / "one")
    assert count_recorded([three, one], task) == RecordedCount(4, 3)


def test_an_episode_without_an_end_counts_and_is_no_success(make_run, task, tmp_path):
    run = make_run(2)
    run.items = [item for item in run.items if not (isinstance(item[2], EpisodeEvent) and is_last_end(item[2]))]
    assert count_recorded([run.write(tmp_path / "bag")], task) == RecordedCount(2, 1)


def is_last_end(event: EpisodeEvent) -> bool:
    return (event.kind, event.episode) == (EpisodeEvent.END, 1)


def test_no_picture_is_read(task, make_run, tmp_path, monkeypatch):
    bag, asked = make_run(2).write(tmp_path / "bag"), []
    raw = BagReader.raw

    def noted(self, topics=None, *times):
        asked.extend(topics)
        return raw(self, topics, *times)

    monkeypatch.setattr(BagReader, "raw", noted)
    assert count_recorded([bag], task).episodes == 2
    assert asked == ["episode/event"]


def test_a_damaged_bag_is_one_sentence(task, tmp_path):
    (tmp_path / "bag_0.mcap").write_bytes(b"no bag at all")
    with pytest.raises(RecordingError, match=r"bag_0\.mcap"):
        count_recorded([tmp_path / "bag_0.mcap"], task)


def test_info_says_the_number_of_a_run(capsys):
    assert main(["data", "info", str(GOLDEN)]) == 0
    assert ": bag, 1 episodes (1 of them a success), rows unknown until they are read, 10 Hz" in capsys.readouterr().out
    assert main(["data", "info", str(GOLDEN), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["episodes"], report["successes"]) == (1, 1)


def test_a_bag_that_was_not_closed_is_named(task, make_run, tmp_path, capsys):
    bag = make_run(2).write(tmp_path / "bag")
    file = bag / "bag_0.mcap"
    file.write_bytes(file.read_bytes()[:-200])
    found = count_recorded([bag], task)
    assert (found.episodes, found.cut) == (2, (str(bag),))
