import math

import numpy as np
import pytest
from robots.ur.twin.test_joint_motions import DT, HOME, REST, accelerations, run

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin.joint_motions import (
    MAX_ACCELERATION,
    MAX_SPEED,
)
from bid_ros.robots.ur.twin.moves import MoveJ, TrapezoidProfile


class TestTrapezoidProfile:
    @pytest.mark.parametrize(("length", "speed", "acceleration"), [(1.0, 0.5, 2.0), (0.01, 0.5, 2.0), (0.25, 0.5, 1.0)])
    def test_is_the_shortest_within_speed_and_acceleration(
        self, length: float, speed: float, acceleration: float
    ) -> None:
        profile = TrapezoidProfile(length, speed, acceleration)
        t = np.linspace(0, profile.duration, 20001)
        way = length * np.array([profile.share(x) for x in t])
        rate = np.diff(way) / np.diff(t)
        assert way[0] == 0 and way[-1] == length
        assert rate.max() == pytest.approx(min(speed, math.sqrt(length * acceleration)), rel=1e-3)
        assert np.abs(np.diff(rate) / np.diff(t)[1:]).max() < acceleration * 1.01

    def test_no_way_takes_no_time(self) -> None:
        profile = TrapezoidProfile(0.0, 1.0, 1.0)
        assert profile.duration == 0.0 and profile.share(0.0) == 1.0


class TestMoveJ:
    def test_arrives_exactly_with_all_joints_in_step(self) -> None:
        target = HOME + np.array([1.0, -0.5, 0.25, 0.1, 0.0, -0.75])
        motion = MoveJ(target, 1.0, 2.0)
        angles, speeds = run(motion, HOME, REST)
        np.testing.assert_array_equal(angles[-1], target)
        assert not speeds[-1].any()
        assert len(angles) * DT == pytest.approx(1.0 / 1.0 + 1.0 / 2.0, abs=3 * DT)
        shares = (angles - HOME)[:, [0, 1, 2, 3, 5]] / (target - HOME)[[0, 1, 2, 3, 5]]
        assert np.ptp(shares, axis=1).max() < 1e-9
        assert accelerations(speeds).max() <= 2.0 * (1 + 1e-9)
        assert np.abs(speeds).max() <= 1.0 * (1 + 1e-9)

    def test_is_done_at_once_where_it_is(self) -> None:
        angles, _ = run(MoveJ(HOME), HOME, REST)
        assert len(angles) == 2

    def test_more_than_the_joints_can_do_is_not_used(self) -> None:
        _, speeds = run(MoveJ(HOME + 1.5, 100.0, 1000.0), HOME, REST)
        assert np.abs(speeds).max() <= MAX_SPEED * (1 + 1e-9)
        assert accelerations(speeds).max() <= MAX_ACCELERATION * (1 + 1e-9)

    @pytest.mark.parametrize(("target", "speed"), [(HOME + 7, 1.0), (HOME, 0.0), (HOME * math.nan, 1.0)])
    def test_bad_input(self, target: np.ndarray, speed: float) -> None:
        with pytest.raises(ArmError, match="movej"):
            MoveJ(target, speed)
