"""How silence is counted: only while the listener ran itself."""

import pytest

from bid_ros.robots.unheard import MOST_NS, Unheard

MS = 1_000_000


def test_silence_counts_from_the_newest_sign_of_life():
    unheard = Unheard(0.1)
    assert unheard.look(1, 0) == 0.0
    assert unheard.look(1, 10 * MS) == pytest.approx(0.01)
    assert unheard.look(2, 20 * MS) == 0.0
    for ms in range(30, 131, 10):
        silence_s = unheard.look(2, ms * MS)
    assert silence_s == pytest.approx(0.11) and silence_s > unheard.limit_s


def test_a_listener_that_was_held_up_counts_little_of_that_time():
    unheard = Unheard(0.1)
    unheard.look(1, 0)
    assert unheard.look(1, 5_000 * MS) == pytest.approx(MOST_NS / 1e9)
    assert unheard.look(1, 5_010 * MS) == pytest.approx(MOST_NS / 1e9 + 0.01)
