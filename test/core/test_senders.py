"""Two senders under one name are told by numbers that step back; one that was started anew is not."""

import pytest

from bid_ros.core.senders import BACK, WITHIN_S, Senders

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
