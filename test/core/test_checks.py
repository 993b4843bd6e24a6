import math

import pytest

from bid_ros.core.checks import check_positive, check_range
from bid_ros.core.errors import BidError, TaskError


@pytest.mark.parametrize("value", [0.5, 1.0, 2])
def test_both_ends_are_valid(value):
    check_range("oven", "heat", value, 0.5, 2, BidError)


@pytest.mark.parametrize("value", [0.49, 2.01, math.nan, math.inf, -math.inf])
def test_outside_is_refused_in_one_sentence(value):
    with pytest.raises(TaskError) as caught:
        check_range("oven", "heat", value, 0.5, 2, TaskError, "K")
    assert str(caught.value) == f"oven: heat is {value} K; valid is 0.5 to 2"


def test_without_subject_and_unit_neither_is_said():
    with pytest.raises(ValueError) as caught:
        check_range("", "samples", 0, 1, 256, ValueError)
    assert str(caught.value) == "samples is 0; valid is 1 to 256"


@pytest.mark.parametrize("value", [1e-300, 1, 1e300])
def test_positive_and_finite_is_valid(value):
    check_positive("oven", "heat", value, BidError)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf])
def test_what_is_not_positive_or_not_finite_is_refused(value):
    with pytest.raises(BidError) as caught:
        check_positive("oven", "heat", value, BidError)
    assert str(caught.value) == f"oven: heat is {value}; valid is a positive finite number"
