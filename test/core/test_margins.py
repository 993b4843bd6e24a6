import math

import pytest

from bid_ros.core.margins import BINS, Margins, Shares, read_shares


def made() -> Margins:
    margins = Margins()
    for value in (0.0, 1.0, 1.0, 4.9):
        assert not margins.over("course", value, 10.0)
    assert margins.over("course", 12.0, 10.0) and margins.over("age", math.nan, 1.0)
    return margins


def test_the_largest_share_and_the_histogram_of_each_check_are_kept():
    margins = made()
    assert margins == {"course": 1.2, "age": 0.0}
    assert margins.counts["course"][:3] == [1, 0, 2] and margins.counts["course"][9] == 1
    assert margins.counts["course"][BINS] == margins.counts["age"][BINS] == 1, "what is over the limit, as NaN is"


def test_what_a_node_says_is_read_again():
    found = read_shares(made().text())
    assert found["course"].largest == 1.2 and found["course"].total == 5
    assert found["course"].counts == made().counts["course"]


@pytest.mark.parametrize("text", ["", "[1]", "3"])
def test_another_text_holds_no_margins(text):
    with pytest.raises(ValueError):
        read_shares(text)


def test_checks_of_two_processes_are_said_together_and_those_of_two_runs_added():
    margins, other = made(), Margins()
    other.over("heartbeat of policy", 0.1, 0.3)
    assert set(read_shares(margins.joined(other).text())) == {"course", "age", "heartbeat of policy"}
    shares, more = read_shares(margins.text())["course"], Shares()
    more.add(shares)
    more.add(Shares(2.0, [1] * (BINS + 1)))
    assert more.largest == 2.0 and more.total == 5 + BINS + 1


def test_a_value_below_zero_is_no_share_of_the_limit():
    margins = Margins()
    assert not margins.over("age", -3.0, 1.0)
    assert margins == {"age": 0.0} and margins.counts["age"][0] == 1
