import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.ur.kinematics import JOINT_LIMIT, MODELS, UR5, UR5E

TCP = np.array([0.01, -0.02, 0.17, 0.2, -0.3, 0.5])


def transform(pose: np.ndarray) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = matrix_from_vector(pose[3:]), pose[:3]
    return matrix


def test_ur5_differs_from_ur5e_in_the_published_lengths() -> None:
    """UR5 of the CB3 series, from the same page of the manufacturer."""
    assert [(a, d) for a, d, _ in UR5.table] == [
        (0, 0.089159),
        (-0.425, 0),
        (-0.39225, 0),
        (0, 0.10915),
        (0, 0.09465),
        (0, 0.0823),
    ]
    assert MODELS == {"ur5e": UR5E, "ur5": UR5}


def by_denavit_hartenberg(q: np.ndarray) -> np.ndarray:
    """The flange by multiplying out the published table."""
    whole = np.eye(4)
    for angle, (a, d, alpha) in zip(q, UR5E.table, strict=True):
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
        whole = whole @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
    return whole


def random_angles(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-JOINT_LIMIT, JOINT_LIMIT, (count, 6))


def test_table_is_the_published_one() -> None:
    half = math.pi / 2
    expected = [
        (0, 0.1625, half),
        (-0.425, 0, 0),
        (-0.3922, 0, 0),
        (0, 0.1333, half),
        (0, 0.0997, -half),
        (0, 0.0996, 0),
    ]
    np.testing.assert_array_equal(UR5E.table, expected)


def test_zero_posture_stretches_the_arm_along_minus_x() -> None:
    np.testing.assert_allclose(UR5E.forward(np.zeros(6))[:3], [-0.8172, -0.1333 - 0.0996, 0.1625 - 0.0997], atol=1e-12)


def test_forward_multiplies_the_table_out() -> None:
    for q in random_angles(300):
        np.testing.assert_allclose(transform(UR5E.forward(q)), by_denavit_hartenberg(q), atol=1e-9)


def test_tool_is_a_pose_in_the_flange_frame() -> None:
    for q in random_angles(100, 1):
        expected = by_denavit_hartenberg(q) @ transform(TCP)
        np.testing.assert_allclose(transform(UR5E.forward(q, TCP)), expected, atol=1e-9)


def test_elbow_lies_where_the_table_puts_it_and_its_velocity_is_the_derivative() -> None:
    step = 1e-6
    short = replace(UR5E, a3=0.0, d4=0.0, d5=0.0, d6=0.0)  # its flange is the elbow
    for q, qd in zip(random_angles(100, 7), random_angles(100, 8), strict=True):
        place, velocity = UR5E.elbow(q, qd)
        np.testing.assert_allclose(place, short.forward(q)[:3], atol=1e-12)
        moved = [np.array(UR5E.elbow(q + way * step * qd, qd)[0]) for way in (-1.0, 1.0)]
        np.testing.assert_allclose(velocity, (moved[1] - moved[0]) / (2 * step), atol=1e-7)


def test_jacobian_is_the_derivative_of_forward() -> None:
    step = 1e-6
    for q in random_angles(100, 2):
        numeric = np.zeros((6, 6))
        for joint in range(6):
            before, after = q.copy(), q.copy()
            before[joint] -= step
            after[joint] += step
            low, high = transform(UR5E.forward(before, TCP)), transform(UR5E.forward(after, TCP))
            numeric[:3, joint] = (high[:3, 3] - low[:3, 3]) / (2 * step)
            turn = (high[:3, :3] - low[:3, :3]) / (2 * step) @ transform(UR5E.forward(q, TCP))[:3, :3].T
            numeric[3:, joint] = turn[2, 1], turn[0, 2], turn[1, 0]
        np.testing.assert_allclose(UR5E.jacobian(q, TCP), numeric, atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_inverse_finds_the_posture_it_came_from(model: str) -> None:
    arm = MODELS[model]
    for q in random_angles(1500, 3):
        np.testing.assert_allclose(arm.inverse(arm.forward(q, TCP), q, TCP), q, atol=1e-6)


def test_inverse_reaches_the_pose_from_any_posture() -> None:
    pairs = zip(random_angles(1500, 4), random_angles(1500, 5), strict=True)
    for q, near in pairs:
        pose = UR5E.forward(q, TCP)
        found = UR5E.inverse(pose, near, TCP)
        assert np.abs(found).max() <= JOINT_LIMIT + 1e-8
        np.testing.assert_allclose(transform(UR5E.forward(found, TCP)), transform(pose), atol=1e-8)


def test_inverse_is_at_least_as_near_as_any_of_the_eight_postures() -> None:
    """The eight postures, found by asking from many places, are the only ones and the nearest is returned."""
    rng = np.random.default_rng(6)
    q = np.array([0.4, -1.3, 1.4, -1.2, -1.1, 0.3])
    pose = UR5E.forward(q)
    postures = {
        tuple(np.round(np.remainder(UR5E.inverse(pose, near) + math.pi, 2 * math.pi) - math.pi, 6))
        for near in rng.uniform(-math.pi, math.pi, (600, 6))
    }
    assert len(postures) == 8
    for near in rng.uniform(-math.pi, math.pi, (200, 6)):
        best = math.inf
        for posture in postures:
            choices = [
                min(abs(angle + k - centre) for k in (-JOINT_LIMIT, 0.0, JOINT_LIMIT) if abs(angle + k) <= JOINT_LIMIT)
                for angle, centre in zip(posture, near, strict=True)
            ]
            best = min(best, math.hypot(*choices))
        assert np.linalg.norm(UR5E.inverse(pose, near) - near) == pytest.approx(best, abs=1e-4)


def test_inverse_winds_joints_as_the_near_posture_does() -> None:
    q = np.array([0.4, -1.3, 1.4, -1.2, -1.1, 0.3])
    for turns in itertools.product((-1, 0), (1, 0), (-1, 0)):
        wound = q + 2 * math.pi * np.array([turns[0], 0, 0, turns[1], 0, turns[2]])
        np.testing.assert_allclose(UR5E.inverse(UR5E.forward(q), wound), wound, atol=1e-9)


def test_inverse_does_not_wind_beyond_a_limit() -> None:
    q = np.array([0.4, -1.3, 1.4, -1.2, -1.1, -JOINT_LIMIT + 0.05])
    near = q.copy()
    near[5] = JOINT_LIMIT - 0.01  # the same place again would be 0.06 rad further, past the limit
    found = UR5E.inverse(UR5E.forward(q), near)
    assert np.abs(found).max() <= JOINT_LIMIT
    np.testing.assert_allclose(transform(UR5E.forward(found)), by_denavit_hartenberg(q), atol=1e-9)


def test_inverse_without_a_limit_stays_within_half_a_turn() -> None:
    for q in random_angles(300, 11):
        for joint, end in itertools.product((0, 3, 5), (-JOINT_LIMIT, JOINT_LIMIT)):
            near, beyond = q.copy(), q.copy()
            near[joint], beyond[joint] = 0.999 * end, 1.001 * end
            found = UR5E.inverse(UR5E.forward(beyond, TCP), near, TCP, limit=math.inf)
            assert found[joint] == pytest.approx(beyond[joint], abs=0.02)  # 0.02, as the elbow may flip beside it


@pytest.mark.parametrize("bend", [0.0, math.pi, -math.pi, 1e-9, 3e-8])
def test_wrist_singularity_keeps_wrist_3_at_the_near_posture(bend: float) -> None:
    for q in random_angles(200, 7) / 2:
        q[4] = bend
        q[2] = 1.0 + abs(q[2]) / 4  # well inside the reach
        near = q + 0.01
        found = UR5E.inverse(UR5E.forward(q), near)
        assert found[5] == pytest.approx(near[5])
        np.testing.assert_allclose(transform(UR5E.forward(found)), by_denavit_hartenberg(q), atol=2e-7)


@pytest.mark.parametrize("bend", [0.0, math.pi])
@pytest.mark.parametrize("elbow", [0.0, 1e-3, math.pi])
def test_wrist_singularity_at_the_edge_of_the_reach(bend: float, elbow: float) -> None:
    """Wrist 3 as it was near would ask for a longer or shorter arm."""
    for q in [np.zeros(6), *random_angles(100, 10) / 2]:
        q[2], q[4] = elbow, bend
        for off in (-0.2, -0.01, 0.01, 0.2):
            near = q.copy()
            near[5] += off
            found = UR5E.inverse(UR5E.forward(q), near)
            if elbow < 1:  # folded, another posture may well be nearer as a whole
                assert abs(found[5] - near[5]) < abs(off) + 1e-6
            np.testing.assert_allclose(transform(UR5E.forward(found)), by_denavit_hartenberg(q), atol=1e-7)


@pytest.mark.parametrize("elbow", [0.0, 1e-9, math.pi])
def test_straight_and_folded_elbow(elbow: float) -> None:
    for q in random_angles(200, 8) / 2:
        q[2] = elbow
        found = UR5E.inverse(UR5E.forward(q), q)
        np.testing.assert_allclose(transform(UR5E.forward(found)), by_denavit_hartenberg(q), atol=1e-7)


def test_shoulder_singularity() -> None:
    """The crossing of the last two axes as near the first axis as the arm's own width allows."""
    for q in random_angles(100, 9) / 2:
        q[4] = 0.3
        wrist = 0.425 * math.cos(q[1]) + 0.3922 * math.cos(q[1] + q[2])
        ratio = wrist / -0.0997
        if abs(ratio) > 1:
            continue
        q[3] = math.asin(-ratio) - q[1] - q[2]
        found = UR5E.inverse(UR5E.forward(q), q)
        np.testing.assert_allclose(transform(UR5E.forward(found)), by_denavit_hartenberg(q), atol=1e-7)


@pytest.mark.parametrize(
    "place", [(1.2, 0.0, 0.3), (0.0, 0.0, 1.5), (0.02, 0.01, 0.3), (-0.5, -0.9, 0.2)], ids=["far", "high", "axis", "x"]
)
def test_pose_out_of_reach_is_refused(place: tuple[float, float, float]) -> None:
    with pytest.raises(ArmError, match=r"no inverse kinematics solution for the pose .* out of the arm's reach"):
        UR5E.inverse([*place, 0.0, math.pi, 0.0], np.zeros(6))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_pose_that_is_no_pose_is_refused(value: float) -> None:
    with pytest.raises(ArmError, match="valid are six finite numbers"):
        UR5E.inverse([0.4, value, 0.3, 0.0, math.pi, 0.0], np.zeros(6))


def test_small_steps_of_the_pose_are_small_steps_of_the_joints() -> None:
    q = np.array([0.3, -1.5, 1.6, -1.7, -1.57, 0.2])
    pose = UR5E.forward(q, TCP)
    for _ in range(300):
        pose[1] += 0.001
        after = UR5E.inverse(pose, q, TCP)
        assert np.abs(after - q).max() < 0.01
        q = after
