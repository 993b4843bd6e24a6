import time

import pytest
from memory_bus import message, stamped

from bid_ros.robots.bus import Heard
from bid_ros.robots.ros.joints import Timestamp


def moment(stamp_s, arrived_s):
    return Timestamp.of(Heard(None, round(arrived_s * 1e9)), message(stamped(stamp_s)).stamp)


@pytest.mark.parametrize(("late_s", "counts"), [(0.0, True), (0.09, True), (0.2, False), (-1.0, False)])
def test_a_stamp_counts_unless_the_clocks_differ(late_s, counts):
    now = time.time()
    found = moment(now - late_s, now)
    assert abs(found.stamp_ns - round((now - late_s if counts else now) * 1e9)) < 1000
    assert abs(found.source_ns - round((now - late_s) * 1e9)) < 1000


def test_its_age_counts_from_its_arrival():
    now = time.time()
    assert moment(now, now - 0.5).age_s() == pytest.approx(0.5, abs=0.2)
    assert moment(now, now + 5.0).age_s() < 0.2, "an arrival that is to come is one of now"


def test_the_same_stamp_again_is_a_repetition_but_two_messages_without_a_stamp_are_not():
    now = time.time()
    assert moment(now, now).repeats(moment(now, now - 0.1))
    assert not moment(now, now).repeats(moment(now - 0.01, now - 0.1))
    assert not moment(0.0, now).repeats(moment(0.0, now))


def test_an_older_stamp_is_no_news_unless_the_clock_was_set_back():
    now = time.time()
    assert moment(now - 5.0, now).repeats(moment(now - 0.01, now - 0.1))
    assert not moment(now - 5.0, now).repeats(moment(now - 0.01, now - 1.5)), "nothing newer came for longer than a s"
    assert not moment(0.0, now).repeats(moment(now, now)), "no stamp"
