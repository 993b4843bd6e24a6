"""Units of data sets of others."""

from __future__ import annotations

import pytest

from bid_ros.core.errors import TaskError
from bid_ros.core.limits import Limits
from bid_ros.core.units import conversion

LIMITS = Limits((0.0, -1.0, 0.0), (1.0, 1.0, 1.0), gripper_min=0.005, gripper_max=0.085)


@pytest.mark.parametrize(
    ("unit", "opened", "closed"), [("0 to 0.8", 0, 0.8), ("-1 to 1", -1, 1), ("255. to 3", 255, 3), ("percent", 100, 0)]
)
def test_a_gripper_counts_from_its_number_open_to_its_number_closed(unit, opened, closed):
    scale, offset = conversion(unit, "gripper", "grip", LIMITS)
    assert opened * scale + offset == pytest.approx(0.085) and closed * scale + offset == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("unit", "kind"), [("0.8 to 0.8", "gripper"), ("0 to", "gripper"), ("0 to nan", "gripper"), ("0 to 1", "joints")]
)
def test_another_unit_is_one_sentence(unit, kind):
    valid = "rad, deg, percent" if kind == "joints" else "m, cm, mm, percent, fraction, and what it is open and closed"
    with pytest.raises(TaskError, match=f"unit of 'a' is '{unit}'; valid for {kind} are {valid}"):
        conversion(unit, kind, "a", LIMITS)
