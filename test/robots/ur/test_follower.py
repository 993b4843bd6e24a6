"""The stream of set-points to a UR: its limits, silence and brakes."""

from copy import deepcopy

import numpy as np
import pytest

from bid_ros.control.follower import FollowerLimits
from bid_ros.control.servo import ChunkServo
from bid_ros.control.spatial import ZERO, norm, turn_between
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import load_task
from bid_ros.robots.registry import load_arm_config
from bid_ros.robots.ur.follower import Pose, TimedSetpoint, UrFollower
from bid_ros.robots.ur.reach import timed

MS = 1_000_000
NO_TURN = (0.0, 0.0, 0.0, 1.0)
LINEAR, ANGULAR = FollowerLimits(0.5, 5.0), FollowerLimits(1.5, 15.0)


def follower(silence_s=0.1, extrapolate_s=0.03):
    built = UrFollower(LINEAR, ANGULAR, silence_s, extrapolate_s)
    built.start(Pose(ZERO, NO_TURN), 0)
    return built


class Watch:
    """Steps a follower and checks its limits from the poses it gives."""

    def __init__(self, built, period_ns):
        self.built, self.period, self.now = built, period_ns, 0
        self.pose, self.velocity, self.turn_rate = built.step(0), np.zeros(3), np.zeros(3)

    def step(self):
        self.now += self.period
        dt = self.period / 1e9
        pose = self.built.step(self.now)
        velocity = (np.array(pose.position) - self.pose.position) / dt
        turn_rate = np.array(turn_between(self.pose.quaternion, pose.quaternion)) / dt
        assert np.linalg.norm(velocity) <= LINEAR.speed + 1e-6
        assert np.linalg.norm(turn_rate) <= ANGULAR.speed + 1e-5
        assert np.linalg.norm(velocity - self.velocity) <= LINEAR.acceleration * dt + 1e-6
        assert np.linalg.norm(turn_rate - self.turn_rate) <= ANGULAR.acceleration * dt + 1e-4
        self.pose, self.velocity, self.turn_rate = pose, velocity, turn_rate
        return pose


@pytest.mark.parametrize("period", [2 * MS, 8 * MS])
@pytest.mark.parametrize("seed", range(6))
def test_no_set_points_break_a_limit(seed, period):
    """Jumps, late ones, gaps and stops."""
    random = np.random.default_rng(seed)
    built = follower()
    watch = Watch(built, period)
    for _ in range(60):
        turn = random.normal(size=4)
        velocity, rate = random.normal(0, 0.3, 3), random.normal(0, 1.0, 3)
        stamp = watch.now - int(random.integers(0, 20)) * MS
        place = tuple(random.normal(0, 0.2, 3).tolist())
        quaternion = tuple((turn / np.linalg.norm(turn)).tolist())
        built.accept(TimedSetpoint(stamp, place, quaternion, tuple(velocity.tolist()), tuple(rate.tolist())))
        for _ in range(int(random.integers(1, 40))):
            watch.step()
        if built.silent:
            built.start(watch.pose, watch.now)
            watch.velocity = watch.turn_rate = np.zeros(3)


def test_a_steady_motion_is_followed_between_the_set_points_without_lag():
    built = follower()
    watch = Watch(built, 2 * MS)
    worst = 0.0
    for k in range(400):
        t = watch.now / 1e9
        if k % 5 == 0:
            built.accept(TimedSetpoint(watch.now, (0.2 * t, 0.0, 0.0), NO_TURN, (0.2, 0.0, 0.0), ZERO))
        x = watch.step().position[0]
        if t > 0.5:
            worst = max(worst, abs(x - 0.2 * watch.now / 1e9))
    assert worst < 2e-4


def test_silence_in_motion_brakes_and_ignores_what_comes_later():
    built = follower(0.1)
    watch = Watch(built, 8 * MS)
    while watch.now < 400 * MS:
        t = watch.now / 1e9
        built.accept(TimedSetpoint(watch.now, (0.3 * t, 0.0, 0.0), NO_TURN, (0.3, 0.0, 0.0), ZERO))
        watch.step()
    last = watch.now
    while not built.at_rest:
        watch.step()
        assert watch.now - last < 500 * MS
    assert built.silent
    assert 0.1 <= (watch.now - last) / 1e9 < 0.1 + 0.3 / LINEAR.acceleration
    place = watch.pose.position[0]
    # It stood still in the end where it was carried on to, or a little beyond if it could not come back in time.
    assert 0.0 < place - 0.3 * last / 1e9 < 0.03 * 0.3 + 0.3**2 / 2 / LINEAR.acceleration + 0.001
    built.accept(TimedSetpoint(watch.now, (0.0, 0.0, 0.0), NO_TURN, (0.3, 0.0, 0.0), ZERO))
    assert watch.step().position[0] == place


@pytest.mark.parametrize("stall_ms", [30, 60, 100, 1000])
@pytest.mark.parametrize("speed", [0.2, 0.3])
def test_a_stall_of_who_sends_set_points_does_not_drive_the_tool_through_the_floor(root, speed, stall_ms):
    """The servo keeps its own stopping point in the workspace; what is carried on without it may pass by this much."""
    task = load_task(root / "config" / "ur5_pick" / "task.yaml")
    config = load_arm_config(root / "config" / "ur5_pick" / "robot.yaml", "127.0.0.1", twin=False, name="ur")
    floor, start, down = task.limits.workspace_min[2], np.array([0.48, 0.0, 0.25]), [1.0, 0.0, 0.0, 0.0]
    actions = np.tile([*start, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.08], (15, 1))
    actions[:, 2] = np.maximum(start[2] - speed * 0.1 * np.arange(15), floor)
    servo = ChunkServo(task, 0.055)
    servo.start(start, down, 0)
    servo.accept(ActionChunk(0, 100 * MS, actions, source="policy", sequence=1))
    linear = FollowerLimits(config.max_speed, config.max_acceleration)
    angular = FollowerLimits(config.max_turn_rate, config.max_turn_acceleration)
    built = UrFollower(linear, angular, config.silence_timeout_s, config.extrapolate_s)
    built.start(Pose(tuple(start), tuple(down)), 0)

    def lowest(servo, built, begin, end, stall=range(0)):
        heights = []
        for ms in range(begin, end, 2):
            if ms % 10 == 0 and ms not in stall:
                built.accept(timed(servo.step(ms * MS).setpoint, ms * MS))
            heights.append(built.step(ms * MS).position[2])
        return min(heights)

    step, passed = 40, []
    lowest(servo, built, 0, 120)
    for begin in range(120, 1200, step):
        stall = range(begin + 1, begin + stall_ms)
        passed.append(floor - lowest(*deepcopy((servo, built)), begin, 1400, stall))
        passed.append(floor - lowest(servo, built, begin, begin + step))  # what comes before the next stall
    assert 0.0 < max(passed) < speed * config.extrapolate_s + 0.001


def test_silence_at_rest_holds_the_pose():
    built = follower(0.1)
    watch = Watch(built, 8 * MS)
    built.accept(TimedSetpoint(0, (0.05, 0.0, 0.0), NO_TURN, ZERO, ZERO))
    for _ in range(12):
        watch.step()
    assert not built.silent
    built.accept(TimedSetpoint(watch.now, watch.pose.position, NO_TURN, ZERO, ZERO))
    for _ in range(5):
        built.accept(TimedSetpoint(watch.now, (0.05, 0.0, 0.0), NO_TURN, ZERO, ZERO))
        for _ in range(10):
            watch.step()
    for _ in range(100):
        watch.step()
    assert not built.silent
    assert watch.pose.position[0] == pytest.approx(0.05, abs=1e-3)


def test_a_brake_stops_on_a_line_and_stays():
    built = follower()
    watch = Watch(built, 8 * MS)
    for _ in range(30):
        built.accept(TimedSetpoint(watch.now, (1.0, 0.0, 0.0), NO_TURN, ZERO, (0.0, 0.0, 1.0)))
        watch.step()
    built.brake()
    while not built.at_rest:
        watch.step()
    assert not built.silent
    assert norm(watch.step().position) == pytest.approx(watch.pose.position[0])
