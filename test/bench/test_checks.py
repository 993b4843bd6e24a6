"""What the environments of the benches check alike."""

import numpy as np
import pytest

from bid_ros.bench.checks import check_simulator, finite
from bid_ros.core.errors import BidError


@pytest.mark.parametrize("value", [[1.0, np.nan], [1.0], [[1.0, 2.0]], [1.0, np.inf]])
def test_another_number_of_values_and_values_that_are_not_finite_are_refused(value):
    with pytest.raises(BidError, match=r"Push-T: action is .*; valid are 2 finite numbers"):
        finite("Push-T", "action", value, 2)


def test_values_become_float64():
    assert finite("Push-T", "action", [1, 2], 2).dtype == np.float64


def test_a_simulator_that_is_missing_is_named():
    check_simulator("door", "numpy", "NumPy")
    with pytest.raises(BidError, match="the bench door needs none in an environment of its own"):
        check_simulator("door", "no_such_simulator", "none")
