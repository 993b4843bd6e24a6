"""``bid record``: what it starts, and what it leaves."""

from __future__ import annotations

import argparse

import pytest
from forked_bid import bid

from bid_ros.commands import record, up
from bid_ros.core.errors import BidError
from bid_ros.core.topics import TOPICS
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    record.add_parser(parser.add_subparsers(dest="verb"))
    return parser.parse_args(["record", *arguments])


@pytest.fixture
def played(monkeypatch):
    """What would be started."""
    found = []
    monkeypatch.setattr(up, "play", lambda system, arguments, as_json: found.append(arguments) or 0)
    return found


def test_a_person_drives_or_takes_over_from_the_policy(played, tmp_path):
    out = ("--out", str(tmp_path / "out"))
    assert record.run(parsed("franka_place", "--device", "joy", *out)) == 0
    assert record.run(parsed("franka_place", "--device", "joy", "--policy", "--image-codec", "jpeg:80", *out)) == 0
    driven, shared = played
    assert (driven.driver, driven.takeover, driven.human, driven.image_codec) == ("joy", "", True, "png")
    assert (shared.driver, shared.takeover, shared.human, shared.image_codec) == ("policy", "joy", True, "jpeg:80")


def test_an_unknown_device_is_refused_before_anything_starts(played):
    with pytest.raises(BidError, match="'hands' does not exist; valid are"):
        record.run(parsed("franka_place", "--device", "hands"))
    assert not played


def test_a_device_that_nobody_holds_is_refused_before_anything_starts(played):
    sentence = r"nobody holds the device 'scripted', .*: bid up franka_place --driver scripted"
    with pytest.raises(BidError, match=sentence):
        record.run(parsed("franka_place", "--device", "scripted"))
    assert not played


def test_what_a_killed_recorder_left_open_is_closed_and_what_there_is_is_said(tmp_path):
    folder = tmp_path / "episodes"
    whole = BagWriter(folder / "0000")
    whole.close()
    torn = BagWriter(folder / "0001")
    torn.add_topic("/episode/note", find_definition(TOPICS["episode/note"].type_name))
    torn.write("/episode/note", 5, b"\0\1\0\0\2\0\0\0a\0")
    torn.flush()
    said = []
    record._finish(folder, said.append)
    assert "0001 was not closed: it is whole up to its message 1" in said[0]
    assert said[-1].startswith(f"2 episodes in {folder}; look at them with")
    with BagReader(folder / "0001") as reader:
        assert reader.was_complete and [item.message.data for item in reader.messages()] == ["a"]


def test_the_help_says_what_each_key_does():
    done = bid("record", "--help")
    assert done.returncode == 0
    for word in ("takes the last episode back", "left bumper", "--policy", "jpeg:QUALITY", "t TEXT enter"):
        assert word.split()[0] in done.stdout and word in " ".join(done.stdout.split())
