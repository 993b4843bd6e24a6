"""Set-points of the last moments: what is kept of them, and that a state far from them is still found."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import pytest

from bid_ros.control.spatial import Pose
from bid_ros.core.margins import Margins
from bid_ros.robots.course import JointCourse, ToolCourse

PERIOD_NS = 10_000_000
UNTURNED = (0.0, 0.0, 0.0, 1.0)


@dataclass
class State:
    joints: tuple[float, ...]
    pose: Pose


def at(x):
    return Pose((x, 0.0, 0.3), UNTURNED)


def tool_course():
    course = ToolCourse(0.12, 0.02, 0.1, Margins())
    course.begin(at(0.0), at(0.0), 0)
    return course, at


def joint_course():
    course = JointCourse(0.12, (0.05,) * 7, Margins())
    course.begin((0.0,) * 7, (0.0,) * 7, 0)
    return course, lambda x: (x,) * 7


@pytest.mark.parametrize("made", [tool_course, joint_course])
def test_set_points_that_nobody_compares_do_not_pile_up(made):
    """As in the twin of a Franka, whose driver grew by 3 MB a minute."""
    course, place = made()

    def send(first, last):
        for number in range(first, last):
            course.sent(place(1e-6 * number), number * PERIOD_NS)

    send(1, 1000)
    tracemalloc.start()
    try:
        send(1000, 2000)
        before, _ = tracemalloc.get_traced_memory()
        send(2000, 12_000)
        assert tracemalloc.get_traced_memory()[0] < before + 10_000, "bytes, of 10,000 set-points"
    finally:
        tracemalloc.stop()


def test_a_tool_off_its_set_points_is_found_after_a_long_stream():
    course, place = tool_course()
    for number in range(1, 3000):
        course.sent(place(1e-4 * number), number * PERIOD_NS)
    now_ns, joints = 3000 * PERIOD_NS, (0.1,) * 7
    assert not course.doubt(State(joints, at(0.2999)), now_ns, 0.0)
    course.sent(place(0.3), now_ns)
    assert "off the set-points of the last 0.12 s" in course.doubt(State(joints, at(0.2)), now_ns + 1, 0.0)
