import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bid_ros.core.rotation import (
    DOWN_6D,
    DOWN_QUATERNION,
    matrix_from_6d,
    matrix_from_quaternion,
    matrix_from_vector,
    matrix_to_6d,
    quaternion_from_matrix,
    vector_from_matrix,
)

RANDOM = Rotation.random(50, random_state=3)
# Half turns about each axis and about two at once: the places where a careless formula divides by nearly zero.
HALF_TURNS = Rotation.from_rotvec(
    np.pi * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0, 0.6, -0.8], [0.6, 0, 0.8]])
)
ALL = Rotation.concatenate([RANDOM, HALF_TURNS, Rotation.identity(1)])


def test_both_forms_of_straight_down_are_the_same_rotation():
    np.testing.assert_array_equal(matrix_from_quaternion(DOWN_QUATERNION), np.diag([1.0, -1.0, -1.0]))
    np.testing.assert_array_equal(matrix_from_6d(DOWN_6D), np.diag([1.0, -1.0, -1.0]))


@pytest.mark.parametrize("rotation", list(ALL))
def test_quaternions_agree_with_scipy(rotation):
    np.testing.assert_allclose(matrix_from_quaternion(rotation.as_quat()), rotation.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(matrix_from_quaternion(-7.0 * rotation.as_quat()), rotation.as_matrix(), atol=1e-12)
    quaternion = quaternion_from_matrix(rotation.as_matrix())
    assert quaternion[3] >= 0
    assert np.linalg.norm(quaternion) == pytest.approx(1.0)
    assert abs(quaternion @ rotation.as_quat()) == pytest.approx(1.0)


def test_quaternions_of_a_stack_are_those_of_its_matrices():
    matrices = ALL.as_matrix()
    alone = np.stack([quaternion_from_matrix(matrix) for matrix in matrices])
    assert len({int(np.argmax(np.abs(row))) for row in alone}) == 4, "each component should be the largest once"
    np.testing.assert_allclose(quaternion_from_matrix(matrices), alone, atol=1e-15)
    np.testing.assert_allclose(quaternion_from_matrix(np.stack([matrices, matrices])), [alone, alone], atol=1e-15)


@pytest.mark.parametrize("rotation", list(ALL))
def test_vectors_agree_with_scipy(rotation):
    matrix = rotation.as_matrix()
    np.testing.assert_allclose(matrix_from_vector(rotation.as_rotvec()), matrix, atol=1e-12)
    vector = vector_from_matrix(matrix)
    assert np.linalg.norm(vector) <= np.pi + 1e-9
    np.testing.assert_allclose(matrix_from_vector(vector), matrix, atol=1e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, np.pi - 1e-6, np.pi])
def test_tiny_and_nearly_half_turns_keep_their_vector(angle):
    vector = angle * np.array([2.0, -1.0, 2.0]) / 3.0
    back = vector_from_matrix(matrix_from_vector(vector))
    assert min(np.abs(back - vector).max(), np.abs(back + vector).max() if angle == np.pi else 1.0) < 1e-9


def test_six_numbers_are_the_first_two_columns():
    matrix = RANDOM[0].as_matrix()
    np.testing.assert_array_equal(matrix_to_6d(matrix), [*matrix[:, 0], *matrix[:, 1]])


def test_six_numbers_go_there_and_back_for_stacks_of_any_shape():
    matrices = RANDOM.as_matrix().reshape(5, 10, 3, 3)
    six = matrix_to_6d(matrices)
    assert six.shape == (5, 10, 6)
    np.testing.assert_allclose(matrix_from_6d(six), matrices, atol=1e-12)


def test_six_numbers_that_are_not_exact_give_the_nearest_rotation_of_the_first_column():
    matrix = RANDOM[1].as_matrix()
    six = matrix_to_6d(matrix) * np.repeat([3.0, 0.2], 3)
    six[3:] += 0.7 * matrix[:, 0]
    np.testing.assert_allclose(matrix_from_6d(six), matrix, atol=1e-12)


def test_noise_always_gives_a_rotation():
    six = np.random.default_rng(0).normal(size=(200, 6))
    matrices = matrix_from_6d(six)
    np.testing.assert_allclose(matrices @ matrices.transpose(0, 2, 1), np.tile(np.eye(3), (200, 1, 1)), atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(matrices), 1.0, atol=1e-9)


def test_no_direction_at_all_stays_finite():
    assert np.isfinite(matrix_from_6d(np.zeros(6))).all()
