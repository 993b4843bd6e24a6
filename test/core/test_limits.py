"""Limits of an arm that would hold nothing up: their unit is another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bid_ros.core.errors import TaskError
from bid_ros.core.limits import PLAUSIBLE, check_units
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.system.new import new_system

LIMITS = find_system("franka_place").task.limits


@pytest.mark.parametrize("name", shipped_systems())
def test_limits_of_the_shipped_systems_are_in_their_units(name):
    check_units(find_system(name).task.limits)


@pytest.mark.parametrize("name", PLAUSIBLE)
def test_each_limit_ends_where_it_holds_nothing_up(name):
    most, unit = PLAUSIBLE[name]
    check_units(replace(LIMITS, **{name: most}))
    with pytest.raises(TaskError, match=rf"limits: {name} is .* {unit.replace('^', '.')}; valid is up to "):
        check_units(replace(LIMITS, **{name: 1.01 * most}))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max_speed: 0.5 ", "max_speed: 500 ", "max_speed is 500 m/s; valid is up to 3 m/s: is its unit another?"),
        ("max_tilt: 0.6 ", "max_tilt: 35 ", "max_tilt is 35 rad; valid is up to 3.2 rad: is its unit another?"),
        ("[0.70, 0.30, 0.60]", "[700, 300, 600]", r"workspace_max is \[700.0, 300.0, 600.0\] m; valid is within 5 m"),
    ],
)
def test_a_system_in_other_units_does_not_start(tmp_path, old, new, said):
    file = new_system(tmp_path / "mine", like="franka_place").file("task.yaml")
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(TaskError, match=rf"task file {file}: limits: {said}"):
        find_system(file.parent).check(twin=True)
