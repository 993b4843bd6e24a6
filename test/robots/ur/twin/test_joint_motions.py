import math
from collections.abc import Callable

import numpy as np
import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import JOINT_LIMIT, UR5E, ToolKinematics
from bid_ros.robots.ur.twin.joint_motions import (
    MAX_ACCELERATION,
    MAX_SPEED,
    Hold,
    RunningMotion,
    ServoJ,
    StopJ,
)
from bid_ros.robots.ur.twin.moves import MoveJ, StopL

DT = 0.002
HOME = np.array([0.3, -1.5, 1.6, -1.7, -1.57, 0.2])
REST = np.zeros(6)
TOOL = ToolKinematics(UR5E, np.array([0.0, 0.0, 0.17, 0.0, 0.0, 0.0]))


def run(
    motion: RunningMotion, q: np.ndarray, qd: np.ndarray, cycles: int = 5000, dt: float = DT, to_the_end: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Step until done or for ``cycles``; return angles and speeds ``(n + 1, 6)`` with the start in the first row."""
    angles, speeds = [q], [qd]
    for _ in range(cycles):
        q, qd = motion.step(q, qd, dt)
        angles.append(q)
        speeds.append(qd)
        if to_the_end and motion.done:
            break
    return np.array(angles), np.array(speeds)


def accelerations(speeds: np.ndarray, dt: float = DT) -> np.ndarray:
    return np.abs(np.diff(speeds, axis=0)).max(axis=1) / dt


def tool(angles: np.ndarray) -> np.ndarray:
    return np.array([TOOL.forward(q) for q in angles])


class TestServoJ:
    @pytest.mark.parametrize("dt", [0.002, 0.008])
    @pytest.mark.parametrize("gain", [100.0, 300.0, 2000.0])
    @pytest.mark.parametrize("lookahead", [0.03, 0.1, 0.2])
    def test_settles_on_the_target_for_every_valid_setting(self, lookahead: float, gain: float, dt: float) -> None:
        target = HOME + np.array([0.05, -0.05, 0.02, 0.1, -0.1, 0.03])
        servo = ServoJ(target, lookahead, gain)
        angles, speeds = run(servo, HOME, REST, int(8 / dt), dt)
        np.testing.assert_allclose(angles[-1], target, atol=1e-4)
        assert np.abs(speeds).max() < 3.0 and not servo.done

    def test_small_step_follows_the_documented_law(self) -> None:
        gain, lookahead, dt = 300.0, 0.1, 1e-5
        angles, _ = run(ServoJ(HOME + 0.01, lookahead, gain), HOME, REST, 30000, dt)
        decay, frequency = gain * lookahead / 2, math.sqrt(gain - (gain * lookahead / 2) ** 2)
        t = dt * np.arange(len(angles))
        wave = np.cos(frequency * t) + decay / frequency * np.sin(frequency * t)
        np.testing.assert_allclose(angles[:, 0] - HOME[0], 0.01 * (1 - np.exp(-decay * t) * wave), atol=2e-6)

    @pytest.mark.parametrize(("lookahead", "gain"), [(0.03, 2000.0), (0.2, 100.0)])
    def test_law_holds_at_the_end_of_the_cycle(self, lookahead: float, gain: float) -> None:
        q, qd, dt = HOME, np.full(6, 0.1), 0.008
        after, speed = ServoJ(HOME + 0.01, lookahead, gain).step(q, qd, dt)
        np.testing.assert_allclose((speed - qd) / dt, gain * (HOME + 0.01 - (after + lookahead * speed)), rtol=1e-9)

    def test_lags_a_moving_target_by_the_lookahead(self) -> None:
        q, qd, speed = HOME, REST, 0.2
        for k in range(1500):
            target = HOME + speed * (k + 1) * DT
            q, qd = ServoJ(target, 0.1, 300.0).step(q, qd, DT)
        np.testing.assert_allclose(target - q, speed * 0.1, rtol=0.03)

    def test_low_damping_overshoots_and_high_does_not(self) -> None:
        def overshoot(lookahead: float, gain: float) -> float:
            angles, _ = run(ServoJ(HOME + 0.05, lookahead, gain), HOME, REST, 1000)
            return float(angles[:, 0].max() - HOME[0] - 0.05) / 0.05

        assert overshoot(0.03, 300.0) > 0.2
        assert overshoot(0.2, 300.0) < 0.001

    def test_jump_of_the_target_keeps_the_limits(self) -> None:
        _, speeds = run(ServoJ(HOME + 1.0, 0.03, 2000.0), HOME, REST, 1000)
        assert np.abs(speeds).max() == pytest.approx(MAX_SPEED)
        assert accelerations(speeds).max() == pytest.approx(MAX_ACCELERATION)

    @pytest.mark.parametrize(
        ("target", "lookahead", "gain", "message"),
        [
            ([7.0, 0, 0, 0, 0, 0], 0.1, 300.0, "servoj target: base is 7.0 rad"),
            ([0, 0, 0, 0, 0, math.nan], 0.1, 300.0, "servoj target: the values are .*nan.*; valid are six finite"),
            (HOME, 0.02, 300.0, "lookahead is 0.02 s; valid is 0.03 to 0.2"),
            (HOME, 0.1, 2001.0, "gain is 2001.0; valid is 100.0 to 2000.0"),
        ],
    )
    def test_bad_input(self, target: object, lookahead: float, gain: float, message: str) -> None:
        with pytest.raises(ArmError, match=message):
            ServoJ(target, lookahead, gain)

    def test_five_joints_are_refused(self) -> None:
        with pytest.raises(ArmError, match="six"):
            ServoJ([0.0] * 5)


class TestServoJToAPose:
    def test_goes_to_the_pose(self) -> None:
        pose = TOOL.forward(HOME) + np.array([0.02, -0.03, 0.01, 0.0, 0.0, 0.0])
        angles, _ = run(ServoJ(TOOL.inverse(pose, HOME), 0.1, 500.0), HOME, REST, 1500)
        np.testing.assert_allclose(tool(angles[-1:])[0], pose, atol=1e-6)

    def test_pose_out_of_reach_is_refused_before_anything_moves(self) -> None:
        with pytest.raises(ArmError, match="no inverse kinematics solution"):
            ServoJ(TOOL.inverse([2.0, 0, 0, 0, math.pi, 0], HOME))


class TestStops:
    @pytest.mark.parametrize("make", [lambda: StopJ(4.0), lambda: StopL(1.5, TOOL), Hold])
    def test_comes_to_rest_and_stays(self, make: Callable[[], RunningMotion]) -> None:
        motion = make()
        angles, speeds = run(motion, HOME, np.array([0.6, -0.4, 0.3, 0.2, -0.3, 0.5]), 1000, to_the_end=False)
        assert motion.done and not speeds[-1].any()
        np.testing.assert_array_equal(angles[-1], angles[-10])

    def test_stopj_decelerates_the_fastest_joint_as_told(self) -> None:
        qd = np.array([1.0, 0.5, 0, 0, 0, 0])
        _, speeds = run(StopJ(4.0), HOME, qd)
        assert len(speeds) - 1 == pytest.approx(1.0 / 4.0 / DT, abs=1)
        np.testing.assert_allclose(speeds[50] / speeds[50, 0], [1, 0.5, 0, 0, 0, 0], atol=1e-12)

    def test_stopl_keeps_the_tool_on_its_line(self) -> None:
        speeds = np.linalg.solve(TOOL.jacobian(HOME), [0.0, -0.4, 0.0, 0.0, 0.0, 0.0])
        stop = StopL(1.0, TOOL)
        poses = tool(run(stop, HOME, speeds)[0])
        assert stop.done
        np.testing.assert_allclose(poses[-1, 1] - poses[0, 1], -(0.4**2) / 2 / 1.0, rtol=0.02)
        assert np.abs(poses[:, [0, 2]] - poses[0, [0, 2]]).max() < 2e-4

    def test_stopl_is_done_at_rest_even_if_the_joints_need_longer_than_the_tool_should(self) -> None:
        qd = np.array([2.0, -1.0, 0.5, 0.5, 0.5, 0.5])
        _, speeds = run(StopL(150.0, TOOL), HOME, qd)
        assert not speeds[-1].any()
        assert len(speeds) - 1 >= 2.0 / MAX_ACCELERATION / DT

    def test_stop_of_an_arm_at_rest_is_done_after_one_cycle(self) -> None:
        for stop in (StopJ(4.0), StopL(4.0, TOOL)):
            angles, _ = run(stop, HOME, REST)
            assert len(angles) == 2

    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
    def test_deceleration_must_be_positive(self, value: float) -> None:
        for make in (StopJ, lambda deceleration: StopL(deceleration, TOOL)):
            with pytest.raises(ArmError, match=r"deceleration is .*; valid is a positive finite number"):
                make(value)

    def test_a_singularity_keeps_the_joint_limits(self) -> None:
        q = HOME.copy()
        q[4] = 0.02  # the wrist nearly stretched
        _, speeds = run(StopL(10.0, TOOL), q, np.array([0.0, 0.0, 0.0, 2.0, 0.3, -2.0]), 150, to_the_end=False)
        assert np.abs(speeds).max() <= MAX_SPEED + 1e-9
        assert accelerations(speeds).max() <= MAX_ACCELERATION * (1 + 1e-9)

    def test_end_of_a_joints_range(self) -> None:
        q = HOME.copy()
        q[5] = JOINT_LIMIT - 0.1
        with pytest.raises(ArmError, match=r"joint position limit: wrist 3 is 6\.28"):
            run(StopL(0.5, TOOL), q, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), 500, to_the_end=False)


def random_motion(rng: np.random.Generator, q: np.ndarray) -> RunningMotion:
    """Any motion with any parameters, around the home posture so that no joint comes to the end of its range."""
    near = HOME + rng.normal(0, 0.3, 6)
    pose = TOOL.forward(near)
    kind = int(rng.integers(6))
    if kind == 0:
        return ServoJ(near, rng.uniform(0.03, 0.2), rng.uniform(100, 2000))
    if kind == 1:
        return ServoJ(TOOL.inverse(pose, q), rng.uniform(0.03, 0.2), rng.uniform(100, 2000))
    if kind == 2:
        return MoveJ(near, rng.uniform(0.1, 10), rng.uniform(0.1, 100))
    if kind == 3:
        return StopJ(rng.uniform(0.5, 100))
    return StopL(rng.uniform(0.5, 100), TOOL) if kind == 4 else Hold()


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 12))])
@pytest.mark.parametrize("dt", [0.002, 0.008])
def test_any_sequence_of_motions_keeps_speed_continuous_and_position_its_integral(seed: int, dt: float) -> None:
    rng = np.random.default_rng(seed)
    q, qd, motion = HOME, REST, Hold()
    refused = 0
    for _ in range(1500):
        if rng.random() < 0.03:
            motion = random_motion(rng, q)
        try:
            after, speed = motion.step(q, qd, dt)
        except ArmError:
            # What the controller does then.
            refused += 1
            motion = StopJ(MAX_ACCELERATION)
            after, speed = motion.step(q, qd, dt)
        assert np.abs(speed - qd).max() <= MAX_ACCELERATION * dt * 1.002
        assert np.abs(speed).max() <= MAX_SPEED * 1.002
        np.testing.assert_allclose(after, q + speed * dt, atol=1e-12)
        q, qd = after, speed
    assert refused < 200
