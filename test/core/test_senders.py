"""Two senders under one name are told by numbers that step back; one that was started anew is not."""

import pytest

from bid_ros.core.senders import ANEW_S, BACK, WITHIN_S, Senders, SoleSender

PERIOD_NS = 50_000_000


@pytest.mark.parametrize("ahead", [-1000, -1, 2, 1000])
def test_a_second_sender_is_found_wherever_it_counts_and_is_forgotten_when_it_is_gone(ahead):
    senders = Senders()
    for tick in range(2000, 2000 + BACK + 1):
        senders.take("camera", tick, tick * PERIOD_NS)
        senders.take("policy", 3, tick * PERIOD_NS)
        assert senders.doubled(tick * PERIOD_NS) == ("camera" if tick >= 2000 + BACK else "")
        senders.take("camera", tick + ahead, tick * PERIOD_NS)
    now_ns = tick * PERIOD_NS
    assert senders.doubled(now_ns) == "camera" and senders.names() == {"camera", "policy"}
    assert senders.doubled(now_ns + round(1e9 * WITHIN_S)) == ""


def test_a_node_that_was_started_anew_a_few_times_is_one_sender():
    senders = Senders()
    for start in range(10):
        for tick in range(20):
            now_ns = (20 * start + tick) * PERIOD_NS
            senders.take("camera", tick, now_ns)
            assert senders.doubled(now_ns) == ""


@pytest.mark.parametrize("ahead", [-500, -1, 0, 101, 5000])
def test_no_message_of_a_second_publisher_passes_that_counts_from_elsewhere(ahead):
    sole = SoleSender()
    for tick in range(1000, 1020):
        now_ns = tick * PERIOD_NS
        assert sole.admits(tick, now_ns) and not sole.admits(tick + ahead, now_ns + 1)
        assert sole.doubled(now_ns + 2)
    assert not sole.doubled(now_ns + round(1e9 * WITHIN_S) + 1)


def test_one_that_counts_from_a_little_ahead_is_noticed_by_the_next_message_of_the_first():
    sole = SoleSender()
    assert sole.admits(7, 0) and sole.admits(20, PERIOD_NS) and not sole.doubled(PERIOD_NS)
    assert not sole.admits(8, 2 * PERIOD_NS) and sole.doubled(2 * PERIOD_NS)


def test_lost_messages_a_node_that_was_started_anew_and_a_middleware_without_numbers_are_no_second_publisher():
    sole = SoleSender()
    assert all(sole.admits(number, number * PERIOD_NS) for number in (1, 2, 5, 100))
    anew_ns = 100 * PERIOD_NS + round(1e9 * ANEW_S)
    assert sole.admits(1, anew_ns) and sole.admits(2, anew_ns + PERIOD_NS)
    assert sole.admits(None, anew_ns) and sole.admits(None, anew_ns) and not sole.doubled(anew_ns)
