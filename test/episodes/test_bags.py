"""Each episode of a session gets a bag; what is discarded or undone can be restored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.errors import BidError
from bid_ros.core.topics import TOPICS, Qos
from bid_ros.curation.trash import restore, trashed
from bid_ros.episodes.bags import TAIL_NS, EpisodeBags
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.episodes import DISCARDED, UNDO, UNDONE, find_episodes
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter

S = 1_000_000_000
STATUS, EVENT, NOTE, FRAMES = "/arm/status", "/episode/event", "/episode/note", "/tf_static"


class Session:
    """Plays a session: a status every 0.1 s, and what a person does."""

    def __init__(self, folder):
        self.bags = EpisodeBags(folder, self._make, {FRAMES: 1})
        self.now = S
        self.sent = 0

    def _make(self, path, custom):
        writer = BagWriter(path, custom_data=custom)
        for topic in (STATUS, EVENT, NOTE, FRAMES):
            name = topic if topic in TOPICS else topic[1:]
            writer.add_topic(topic, find_definition(TOPICS[name].type_name), Qos())
        return writer

    def run(self, seconds):
        for _ in range(round(10 * seconds)):
            self.now += S // 10
            self.bags.write(STATUS, self.now, serialize_message(ArmStatus(sequence=self.sent)))
            self.sent += 1

    def event(self, kind, episode, outcome="", success=False):
        self.now += 1
        event = EpisodeEvent(kind=kind, episode=episode, seed=episode, label="me", outcome=outcome, success=success)
        event.header.stamp.sec, event.header.stamp.nanosec = divmod(self.now, S)
        self.bags.take_event(event, EVENT, self.now, serialize_message(event))

    def note(self, text):
        self.now += 1
        self.bags.take_note(text, NOTE, self.now, serialize_message(String(data=text)))

    def episode(self, number, outcome="success", seconds=2.0, after=3.0):
        self.event(EpisodeEvent.PREPARE, number)
        self.run(1)
        self.event(EpisodeEvent.START, number)
        self.run(seconds)
        self.event(EpisodeEvent.END, number, outcome, outcome == "success")
        self.run(after)


@pytest.fixture
def session(tmp_path):
    session = Session(tmp_path / "episodes")
    yield session
    session.bags.close()


def about(bag):
    with BagReader(bag) as reader:
        return json.loads(reader.custom["episode"])


def sequences(bag):
    with BagReader(bag) as reader:
        assert reader.was_complete
        return [item.message.sequence for item in reader.messages([STATUS])]


def test_an_episode_is_a_bag_from_start_to_a_second_after_its_end(tmp_path):
    session = Session(tmp_path)
    session.bags.write(FRAMES, session.now, b"\0\1\0\0" + bytes(4))
    session.run(1)
    session.episode(0)
    session.episode(1, "failure")
    session.bags.close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["0000", "0001"]
    # 1 s of preparation, on which the first decision is made, 2 s of the episode and the tail of 1 s.
    assert sequences(tmp_path / "0000") == list(range(10, 50))
    assert sequences(tmp_path / "0001") == list(range(70, 110))
    assert about(tmp_path / "0001") == {
        "index": 1,
        "seed": 1,
        "label": "me",
        "outcome": "failure",
        "outcome_class": "task",
        "outcome_code": "failure",
        "success": False,
        "duration_s": 0.0,
        "notes": [],
    }
    for bag in ("0000", "0001"):
        with BagReader(tmp_path / bag) as reader:
            (found,) = find_episodes(reader)
            assert found.outcome == ("success" if bag == "0000" else "failure")
            assert len(list(reader.raw([FRAMES]))) == 1, "what is latched is in every bag"


def test_a_note_and_another_mark_after_the_end_reach_the_bag(session):
    session.episode(0)
    session.note("the cup was wet")
    session.event(EpisodeEvent.END, 0, "failure")
    session.episode(1)
    session.bags.close()
    folder = session.bags.folder
    assert about(folder / "0000")["notes"] == ["the cup was wet"]
    assert about(folder / "0000")["outcome"] == "failure" and about(folder / "0001")["outcome"] == "success"
    with BagReader(folder / "0000") as reader:
        (found,) = find_episodes(reader)
        assert (found.success, found.outcome) == (False, "failure")
        assert [item.message.data for item in reader.messages([NOTE])] == ["the cup was wet"]
    session.bags = EpisodeBags(folder, session._make, {})


def test_undo_moves_the_last_episodes_into_the_trash_one_after_the_other(session):
    folder = session.bags.folder
    for number in range(3):
        session.episode(number)
    for number in (2, 1):
        session.event(UNDO, number, UNDONE)
    assert [path.name for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != "."] == ["0000"]
    assert [item.name for item in trashed(folder)] == ["0002", "0001"]
    session.episode(1)
    session.event(UNDO, 7, UNDONE)  # an episode of another session
    assert (folder / "0003").is_dir(), "a number is used once, so that what is in the trash can be restored"
    restore(folder / "0002")
    assert about(folder / "0002")["outcome"] == UNDONE
    with BagReader(folder / "0002") as reader:
        (found,) = find_episodes(reader)
        assert (found.success, found.outcome) == (False, UNDONE)


def test_a_discarded_episode_is_in_the_trash_at_once_and_whole(session):
    session.episode(0, DISCARDED, after=0.0)
    session.run(2.0)
    assert [item.name for item in trashed(session.bags.folder)] == ["0000"]
    assert not session.bags.recording and session.bags.about is None
    restore(session.bags.folder / "0000")
    assert len(sequences(session.bags.folder / "0000")) == 30


def test_a_new_session_in_the_same_folder_goes_on_counting(session):
    session.episode(0)
    session.episode(1, DISCARDED)
    session.bags.close()
    again = Session(session.bags.folder)
    again.episode(0)
    again.bags.close()
    assert (session.bags.folder / "0002").is_dir()
    session.bags = EpisodeBags(session.bags.folder, session._make, {})


def test_two_recorders_on_one_folder_are_refused_until_the_first_has_ended(tmp_path):
    code = (
        "import sys; from pathlib import Path; from bid_ros.core.lock import lock_folder;"
        "lock_folder(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert other.stdout.readline() == "locked\n"
    with pytest.raises(BidError, match=f"process {other.pid} writes to .*; valid is another folder"):
        Session(tmp_path)
    other.kill()
    other.communicate(timeout=10)
    Session(tmp_path).bags.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write everywhere, so /proc stands for a bad place")
def test_a_folder_that_cannot_be_made_is_one_sentence():
    with pytest.raises(BidError, match="nothing can be written to /proc/nowhere"):
        Session(Path("/proc/nowhere"))


def test_what_comes_long_after_the_end_is_left_out_though_it_arrives_late(session):
    session.episode(0, after=0.0)
    end = session.now
    session.bags.write(STATUS, end + TAIL_NS, serialize_message(ArmStatus(sequence=777)))
    session.bags.write(STATUS, end + TAIL_NS + 1, serialize_message(ArmStatus(sequence=888)))
    session.bags.close()
    assert sequences(session.bags.folder / "0000")[-1] == 777
    session.bags = EpisodeBags(session.bags.folder, session._make, {})
