from __future__ import annotations

from bid_msgs.msg import EpisodeEvent
from bid_ros.core.topics import EPISODE_EVENT
from bid_ros.recording import episodes as module
from bid_ros.recording.episodes import episodes_from_events, find_episodes
from bid_ros.recording.reader import BagMessage, BagReader

PREPARE, START, END = EpisodeEvent.PREPARE, EpisodeEvent.START, EpisodeEvent.END


def pair(kit, *events):
    """Pair events (kind, stamp, episode); each is received 3 ns after its stamp."""
    return episodes_from_events(
        BagMessage(EPISODE_EVENT, stamp + 3, kit.event(kind, stamp, episode)) for kind, stamp, episode in events
    )


def test_constants_are_those_of_the_message():
    assert (module.PREPARE, module.START, module.END) == (PREPARE, START, END)


def test_episodes_of_a_bag(make_run, tmp_path):
    run = make_run(episodes=3, success=lambda index: index != 1)
    with BagReader(run.write(tmp_path / "bag")) as reader:
        found = find_episodes(reader)
    assert [(item.index, item.seed, item.label) for item in found] == [(n, 100 + n, "clean") for n in range(3)]
    assert [(item.success, item.outcome) for item in found] == [
        (True, "success"),
        (False, "timeout"),
        (True, "success"),
    ]
    assert all(item.end_ns - item.start_ns == 2_000_000_000 for item in found)
    assert all(item.start_received_ns == item.start_ns + 1_000_000 for item in found)


def test_recording_that_stops_inside_an_episode(kit):
    first, last = pair(kit, (START, 10, 0), (END, 20, 0), (PREPARE, 25, 1), (START, 30, 1))
    assert (first.start_ns, first.end_ns, first.end_received_ns) == (10, 20, 23)
    assert (last.end_ns, last.success, last.outcome) == (None, False, "not ended")


def test_episode_that_never_ended_does_not_take_the_end_of_the_next(kit):
    first, last = pair(kit, (START, 10, 0), (START, 30, 1), (END, 40, 1))
    assert (first.index, first.end_ns) == (0, None)
    assert (last.index, last.end_ns) == (1, 40)
    (only,) = pair(kit, (START, 10, 0), (END, 20, 5))
    assert only.end_ns is None


def test_latched_event_received_twice_counts_once_and_an_end_alone_is_nothing(kit):
    assert len(pair(kit, (START, 10, 0), (START, 10, 0), (END, 20, 0), (END, 20, 0))) == 1
    assert pair(kit, (END, 20, 0)) == ()
    assert pair(kit) == ()
