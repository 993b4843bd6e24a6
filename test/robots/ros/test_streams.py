"""What is published, held against the simulated controller that reads it."""

from types import SimpleNamespace

import numpy as np
import pytest
from memory_bus import MemoryBus, message

from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.motion import MinimumJerkCourse, stream_course
from bid_ros.robots.ros.streams import ForwardStream, TimedTarget, TrajectoryStream, braking
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController, refusal

NAMES = ("a", "b")
START_NS = 1_700_000_000_000_000_000
AHEAD_S, STOP_S = 0.04, 0.1
TARGET = TimedTarget(START_NS, np.array([0.5, -0.2]), np.array([0.4, -0.1]))
LIMITS = DriverLimits(NAMES, "x", np.full(2, -3.0), np.full(2, 3.0), np.array([1.0, 2.0]), 4.0)


@pytest.fixture
def bus():
    return MemoryBus()


def published(bus):
    (values,) = bus.sent["topic"]
    return message(values)


def test_the_controller_is_where_the_stream_says_at_every_time(bus):
    stream = TrajectoryStream(bus, "topic", NAMES, AHEAD_S)
    stream.begin()
    stream.follow(TARGET, STOP_S)
    controller = TrajectoryController(NAMES)
    controller.activate(np.array([9.0, 9.0]))
    assert refusal(published(bus), NAMES, START_NS) == ""
    controller.take(published(bus), START_NS)
    for late_ms in (0, 10, 40, 70, 139, 140, 500):
        now_ns = START_NS + late_ms * 1_000_000
        expected = stream.reference(TARGET, STOP_S, now_ns)
        assert controller.update(now_ns, np.array([9.0, 9.0])) == pytest.approx(expected.joints, abs=1e-6)
    assert expected.speeds == pytest.approx(np.zeros(2))
    assert expected.joints == pytest.approx(braking(TARGET, AHEAD_S, STOP_S))


def test_messages_that_follow_each_other_make_a_smooth_motion(bus):
    """Each message is a little late, and the motion is the one that was meant."""
    stream, controller = TrajectoryStream(bus, "topic", NAMES, AHEAD_S), TrajectoryController(NAMES)
    controller.activate(np.zeros(2))

    def meant(ms):
        return np.array([0.3, -0.2]) * (1 - np.cos(ms / 300)), np.array([0.3, -0.2]) * np.sin(ms / 300) / 0.3

    off = []
    for ms in range(600):
        now_ns = START_NS + ms * 1_000_000
        if ms % 10 == 3:
            stream.follow(TimedTarget(now_ns - 3_000_000, *meant(ms - 3)), STOP_S)
            controller.take(message(bus.sent["topic"][-1]), now_ns)
        if ms > 3:
            off.append(controller.update(now_ns, np.full(2, 9.0)) - meant(ms)[0])
    assert np.abs(off).max() < 5e-4
    assert np.abs(np.diff(off, axis=0)).max() < 4e-4, "no jump at a message"


def test_without_a_stamp_a_trajectory_begins_when_it_arrives(bus):
    TrajectoryStream(bus, "topic", NAMES, AHEAD_S, stamped=False).follow(TARGET, STOP_S)
    controller, measured, later_ns = TrajectoryController(NAMES), np.full(2, 9.0), START_NS + 3_600_000_000_000
    controller.activate(measured)
    controller.take(published(bus), later_ns)
    assert controller.update(later_ns, measured) == pytest.approx(TARGET.joints)
    assert controller.update(later_ns + 20_000_000, measured) == pytest.approx(TARGET.at(0.02), abs=1e-6)


def test_a_brake_from_rest_holds(bus):
    stream = TrajectoryStream(bus, "topic", NAMES, AHEAD_S)
    stream.brake(TimedTarget(START_NS, TARGET.joints, np.zeros(2)), 0.0)
    points = published(bus).points
    assert len(points) == 2 and points[0].positions == points[1].positions == TARGET.joints.tolist()


def test_forward_positions_brake_evenly_and_end_at_rest(bus):
    stream = ForwardStream(bus, "topic", sleep=lambda seconds: None)
    stream.begin()
    stream.follow(TARGET, STOP_S)
    assert bus.sent["topic"] == [{"data": TARGET.joints.tolist()}]
    stream._stop(1, TARGET, STOP_S)  # what the thread of `brake` runs
    path = np.array([values["data"] for values in bus.sent["topic"]])
    steps = np.diff(path[:, 0])
    assert path[-1] == pytest.approx(braking(TARGET, 0.0, STOP_S))
    assert (np.diff(steps) < 0).all() and steps[0] < 0.01 * TARGET.speeds[0]
    stream.brake(TARGET, STOP_S)
    stream.follow(TARGET, STOP_S)
    count = len(bus.sent["topic"])
    stream._stop(1, TARGET, STOP_S)
    assert len(bus.sent["topic"]) <= count + 1, "a newer target ends a stop"


def test_held_positions_stand_after_a_moment(bus):
    stream = ForwardStream(bus, "topic")
    soon = stream.reference(TARGET, STOP_S, START_NS + 10_000_000)
    late = stream.reference(TARGET, STOP_S, START_NS + 1_000_000_000)
    assert soon.speeds.tolist() == TARGET.speeds.tolist() and late.speeds.tolist() == [0.0, 0.0]
    assert late.joints.tolist() == TARGET.joints.tolist()


def test_a_course_keeps_to_its_share_of_the_limits():
    share = SimpleNamespace(velocity=0.5, acceleration=0.25)
    course = MinimumJerkCourse.between(np.zeros(2), np.array([1.0, -0.5]), LIMITS, share)
    times = np.linspace(-0.1, course.duration_s + 0.1, 2000)
    joints, speeds = (np.array(rows) for rows in zip(*map(course.at, times), strict=True))
    assert joints[0].tolist() == [0.0, 0.0] and joints[-1] == pytest.approx([1.0, -0.5])
    assert (np.abs(speeds).max(axis=0) <= 0.5 * LIMITS.speed + 1e-9).all()
    accelerations = np.gradient(speeds, times, axis=0)
    assert np.abs(accelerations).max() <= 0.25 * LIMITS.acceleration * 1.01
    assert np.gradient(joints, times, axis=0) == pytest.approx(speeds, abs=0.01)


def test_a_course_does_not_jump_after_a_pause(monkeypatch):
    now, seen = [100.0], []

    def sleep(seconds):
        now[0] += 2.0 if len(seen) == 5 else seconds

    monkeypatch.setattr("bid_ros.robots.ros.motion.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    assert stream_course(
        MinimumJerkCourse(np.zeros(1), np.ones(1), 1.0), lambda joints, speeds: seen.append(joints[0]) is None
    )
    assert seen[-1] == pytest.approx(1.0)
    assert np.diff(seen).max() < 1.875 * 0.03 + 1e-9


def test_a_course_ends_early_where_nobody_follows():
    course, seen = MinimumJerkCourse(np.zeros(1), np.ones(1), 0.05), []
    assert stream_course(course, lambda joints, speeds: seen.append(joints[0]) is None)
    assert seen[-1] == pytest.approx(1.0)
    assert not stream_course(course, lambda joints, speeds: False)
