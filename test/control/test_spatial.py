import numpy as np
import pytest

from bid_ros.control.spatial import multiply, rotated, turn_between, turned
from bid_ros.core.rotation import matrix_from_quaternion, matrix_from_vector


def random_quaternion(random):
    q = random.normal(size=4)
    return tuple((q / np.linalg.norm(q)).tolist())


@pytest.mark.parametrize("seed", range(5))
def test_tuples_agree_with_matrices(seed):
    random = np.random.default_rng(seed)
    a, b = random_quaternion(random), random_quaternion(random)
    product = matrix_from_quaternion(a) @ matrix_from_quaternion(b)
    assert matrix_from_quaternion(multiply(a, b)) == pytest.approx(product)
    arrow = random.normal(size=3)
    assert rotated(a, tuple(arrow)) == pytest.approx(matrix_from_quaternion(a) @ arrow)
    turn = turn_between(a, b)
    assert np.linalg.norm(turn) <= np.pi + 1e-9
    assert matrix_from_vector(turn) @ matrix_from_quaternion(a) == pytest.approx(matrix_from_quaternion(b))
    assert matrix_from_quaternion(turned(a, turn)) == pytest.approx(matrix_from_quaternion(b))


def test_both_signs_of_a_quaternion_are_one_rotation():
    q = (0.1, 0.2, 0.3, np.sqrt(1 - 0.14))
    minus = tuple(-value for value in q)
    assert turn_between(q, minus) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert np.linalg.norm(turn_between(q, turned(minus, (0.0, 0.0, 1e-13)))) < 1e-12
