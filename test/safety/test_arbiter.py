import numpy as np
import pytest

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ChunkError
from bid_ros.safety.arbiter import Arbiter

S = 1_000_000_000


def chunk(source, stamp_ns=0, rows=10):
    return ActionChunk(stamp_ns, S // 10, np.zeros((rows, 10)), source=source)


@pytest.mark.parametrize("source", ["teleop", "episode", "policy"])
def test_alone_everyone_may_command(source):
    arbiter = Arbiter()
    assert arbiter.admits(source, 0)
    arbiter.accepted(chunk(source), 0)
    assert arbiter.admits(source, S // 2)


@pytest.mark.parametrize(
    ("holder", "asker", "admitted"),
    [
        ("teleop", "episode", False),
        ("teleop", "policy", False),
        ("episode", "policy", False),
        ("episode", "teleop", True),
        ("policy", "teleop", True),
        ("policy", "episode", True),
    ],
)
def test_the_higher_source_wins(holder, asker, admitted):
    arbiter = Arbiter()
    arbiter.accepted(chunk(holder), 0)
    assert arbiter.admits(asker, S // 2) is admitted


def test_the_lower_source_takes_over_when_the_last_chunk_has_ended():
    arbiter = Arbiter()
    arbiter.accepted(chunk("teleop"), 0)
    assert not arbiter.admits("policy", S - 1)
    assert arbiter.admits("policy", S)


def test_a_newer_chunk_replaces_the_older_one():
    arbiter = Arbiter()
    arbiter.accepted(chunk("teleop", rows=30), 0)
    arbiter.accepted(chunk("teleop", S // 10, rows=5), S // 10)
    assert arbiter.admits("policy", S)


def test_a_chunk_that_begins_later_does_not_command_yet():
    arbiter = Arbiter()
    arbiter.accepted(chunk("teleop", S // 5), 0)
    assert arbiter.admits("policy", 0)
    assert not arbiter.admits("policy", S // 5)


def test_a_chunk_that_is_over_changes_nothing():
    arbiter = Arbiter()
    arbiter.accepted(chunk("teleop"), 5 * S)
    assert arbiter.admits("policy", S // 2)


def test_a_source_that_may_no_longer_command_holds_nobody_off():
    arbiter = Arbiter()
    arbiter.accepted(chunk("teleop"), 0)
    arbiter.accepted(chunk("episode"), 0)
    arbiter.release("teleop")
    assert not arbiter.admits("policy", 0), "the other higher source still commands"
    arbiter.release("episode")
    arbiter.release("episode")
    assert arbiter.admits("policy", 0)


def test_an_unknown_source_is_an_error_that_names_the_valid_ones():
    with pytest.raises(ChunkError, match="'joystick'; valid are teleop, episode, policy"):
        Arbiter().admits("joystick", 0)
    with pytest.raises(ChunkError, match="joystick"):
        Arbiter().accepted(chunk("joystick"), 0)
