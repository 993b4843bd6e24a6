"""Ranks of decoders offline and online, on cases that can be worked out by hand."""

import pytest
from results.prediction import JUDGING, agreement, agreements

from bid_ros.core.errors import BidError

ONLINE = {"good": (0.9, 0.85, 0.95), "fair": (0.7, 0.6, 0.8), "poor": (0.1, 0.0, 0.2), "bad": (0.05, 0.0, 0.15)}


def offline(*values):
    """Return a measure of each decoder of ONLINE that is the same in five episodes."""
    return {name: [value] * 5 for name, value in zip(ONLINE, values, strict=True)}


def test_the_same_order_is_one():
    found = agreement(offline(1.0, 2.0, 3.0, 4.0), ONLINE)
    assert (found.rho, found.right, found.pairs) == (1.0, 5, 5), "poor and bad cannot be told apart"
    assert (found.picked, found.lost) == (("good",), 0.0)
    assert 0.7 < found.low < found.high == 1.0, "poor and bad may change places"


def test_the_turned_order_misleads():
    found = agreement(offline(4.0, 3.0, 2.0, 1.0), ONLINE)
    assert (found.rho, found.right, found.picked) == (-1.0, 0, ("bad",))
    assert found.lost == pytest.approx(0.85)


def test_a_measure_that_is_all_the_same_says_nothing():
    found = agreement(offline(1.0, 1.0, 1.0, 1.0), ONLINE)
    assert (found.rho, found.low, found.high, found.right) == (0.0, 0.0, 0.0, 0)
    assert (found.picked, found.lost) == (tuple(ONLINE), pytest.approx(0.9 - (0.9 + 0.7 + 0.1 + 0.05) / 4))


def test_episodes_that_disagree_widen_the_interval():
    names = list(ONLINE)
    scattered = {name: [place + shift for shift in (-9, 7, 0, 3, -1)] for place, name in enumerate(names)}
    agreed = agreement(scattered, ONLINE)
    scattered["good"] = [-9, 9, 0, 9, -9]
    assert agreement(scattered, ONLINE).low < agreed.low


def test_only_decoders_with_both_count():
    known = {name: ONLINE[name] for name in ("good", "poor")}
    with pytest.raises(BidError, match="2 decoders have a measure and a success; valid are 3 or more"):
        agreement(offline(1.0, 2.0, 3.0, 4.0), known)


def test_every_measure_is_held_against_success():
    whole, short = ({name: dict.fromkeys(JUDGING, -row[0]) for name, row in ONLINE.items()} for _ in range(2))
    for item in short.values():
        del item["backward"]  # an episode of one decision has none
    found = agreements([{"means": short}, *[{"means": whole}] * 9], ONLINE)
    assert list(found) == list(JUDGING)
    assert (found["error"].rho, found["backward"].rho) == (1.0, 1.0)
