"""Whether a robot's limits are its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bid_ros.calibration.limits import PARTS, LimitBox, TablePlane, limits_of
from bid_ros.calibration.limits_file import write_limits
from bid_ros.system.check.folder import folder_findings
from bid_ros.system.check.limits import limits_finding
from bid_ros.system.folder import find_system
from bid_ros.system.new import new_system
from bid_ros.system.run import RunArguments

MINE = {
    "table": TablePlane((0.0, 0.0, 1.0), 0.004),
    "workspace": LimitBox((0.32, -0.25, 0.05), (0.65, 0.25, 0.5)),
    "start": LimitBox((0.45, -0.1, 0.3), (0.5, 0.02, 0.31)),
}


@pytest.mark.parametrize(
    ("given", "shipped"),
    [
        ({"robot": "franka"}, "franka_place"),
        ({"robot": "ur"}, "ur5_pick"),
        ({"robot": "ros"}, "ur5_pick"),
        ({"like": "ur5_pick"}, "ur5_pick"),
    ],
)
def test_limits_are_those_that_are_shipped_until_each_was_measured(tmp_path, given, shipped):
    folder = new_system(tmp_path / "mine", **given).folder
    for number, part in enumerate(PARTS):
        finding = limits_finding(find_system(folder))
        assert finding.state == "warn" and finding.advice == f"measure yours: bid calibrate limits {folder}"
        assert finding.measured.endswith(f"; {', '.join(PARTS[number:])} as shipped in {shipped}")
        system = find_system(folder)
        write_limits(system, replace(limits_of(system.task), **{part: MINE[part]}), (part,))
    finding = limits_finding(find_system(folder))
    assert (finding.state, finding.measured) == ("ok", "workspace [0.320, -0.250, 0.050] to [0.650, 0.250, 0.500] m")


def test_a_twin_is_not_asked_for_its_own(tmp_path):
    system = new_system(tmp_path / "mine", "franka")
    for address, said in (("", []), ("172.16.0.2", ["warn"])):
        findings = folder_findings(system, RunArguments(robot_ip=address))
        assert [item.state for item in findings if item.what == "limits"] == said
