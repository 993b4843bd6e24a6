"""The progress of an episode: of the decisions, or of the arm where nobody decides."""

from __future__ import annotations

import pytest
from run_logs import run_log

from bid_msgs.msg import ArmStatus
from bid_ros.nodes.run_watch import RunWatch


def status():
    told = ArmStatus(gripper_width=0.04, reference_twist=[0.3, 0.4, 0.0, 0.0, 0.0, 0.0])
    told.tool.position.x, told.tool.orientation.w = 0.5, 1.0
    return told


@pytest.mark.parametrize(
    ("decoder", "line"),
    [
        ("bid", " 2.0 s  cup 3 mm  decisions 1  missed 2  decision p50 7 p99 7 ms  successes 2/3"),
        ("", " 2.0 s  cup 3 mm  tool 0.500 0.000 0.000 m  0.50 m/s  gripper 40 mm  successes 2/3"),
    ],
)
def test_the_progress_tells_what_there_is(decoder, line):
    watch = RunWatch(run_log(decoder=decoder, decision_ms=(7.0,)), alone=False)
    assert watch.line(2.0, "cup 3 mm", status()) == line
