import pytest

from bid_ros.episodes.pauses import PAUSE_S, Pauses


def told(*steps, episode=0, begin_s=100.0):
    """Return the pauses of an episode from steps of (s since its begin, whether the arm moves, reason)."""
    pauses, new = Pauses(), []
    pauses.begin(episode, begin_s)
    for at_s, moves, reason in steps:
        new.append(pauses.tell(moves, reason, begin_s + at_s))
    pauses.end(begin_s + steps[-1][0])
    return pauses, [pause for pause in new if pause is not None]


def test_a_long_pause_is_told_once_with_the_reason_of_then_and_its_whole_length():
    pauses, new = told(
        (0.1, True, ""),
        (0.4, False, "a"),
        (0.7, False, "late"),
        (0.9, False, "later"),
        (1.4, True, ""),
        (1.5, True, ""),
    )
    (pause,) = pauses.to_list()
    assert pause == {"episode": 0, "at_s": 0.1, "duration_s": 1.3, "reason": "late", "part": ""}
    assert len(new) == 1
    assert str(pauses) == "1, 1.3 s in all; the longest 1.3 s: late"


def test_a_short_pause_and_one_between_episodes_are_none():
    pauses, _ = told((0.1, True, ""), (0.1 + PAUSE_S, False, "a"), (0.7, True, ""))
    assert not pauses.found and not str(pauses)
    assert pauses.tell(False, "nobody drives", 1000.0) is None and not pauses.found


def test_an_episode_in_which_nothing_ever_moves_pauses_from_its_start_to_its_end():
    pauses, _ = told((0.2, False, "no decision"), (0.6, False, "no decision"), (3.0, False, "no decision"), episode=4)
    (pause,) = pauses.found
    assert (pause.episode, pause.at_s, pause.reason) == (4, 0.0, "no decision")
    assert pause.duration_s == pytest.approx(3.0)


def test_each_pause_counts():
    pauses, new = told((0.6, False, "a"), (1.0, True, ""), (2.0, False, "b"), (2.1, True, ""))
    assert [pause.reason for pause in new] == ["a", "b"]
    assert str(pauses) == "2, 2.1 s in all; the longest 1.1 s: b"


def test_a_part_that_is_named_later_is_to_blame_for_the_whole_pause():
    pauses = Pauses()
    pauses.begin(3, 10.0)
    pauses.tell(False, "no decision", 11.0)
    pauses.tell(False, "images of 'wrist' are frozen", 12.0, "camera")
    pauses.tell(False, "the policy decides", 13.0)
    lost_s, all_s, longest = pauses.blamed(14.0)
    assert (lost_s, all_s) == (4.0, 4.0)
    assert (longest.reason, longest.part) == ("images of 'wrist' are frozen", "camera")


def test_only_the_pauses_of_the_present_episode_with_a_part_to_blame_count():
    pauses = Pauses()
    pauses.begin(0, 0.0)
    pauses.tell(False, "images of 'wrist' are frozen", 2.0, "camera")
    pauses.begin(1, 10.0)
    pauses.tell(False, "no decision", 13.0)
    assert pauses.blamed(14.0) == (0, 4.0, None)
