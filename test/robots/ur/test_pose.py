import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bid_ros.robots.ur.pose import product, rotation_of, transpose, turned, vector_of

RNG = np.random.default_rng(0)
VECTORS = [*RNG.normal(size=(300, 3)), *(RNG.normal(size=(50, 3)) * 1e-8), np.zeros(3)]


def half_turns() -> list[np.ndarray]:
    axes = [*np.eye(3), *-np.eye(3), *RNG.normal(size=(50, 3))]
    return [axis / np.linalg.norm(axis) * angle for axis in axes for angle in (math.pi, math.pi - 1e-7)]


@pytest.mark.parametrize("vector", [*VECTORS[:20], *VECTORS[-20:], *half_turns()])
def test_rotation_vector_there_and_back(vector: np.ndarray) -> None:
    expected = Rotation.from_rotvec(vector)
    rotation = rotation_of(*vector)
    np.testing.assert_allclose(np.reshape(rotation, (3, 3)), expected.as_matrix(), atol=1e-14)
    back = vector_of(rotation)
    assert math.hypot(*back) <= math.pi + 1e-12
    np.testing.assert_allclose(Rotation.from_rotvec(back).as_matrix(), expected.as_matrix(), atol=1e-9)


def test_product_transpose_and_turned() -> None:
    for first, second in zip(VECTORS[:100], VECTORS[100:200], strict=True):
        p, q = rotation_of(*first), rotation_of(*second)
        matrices = np.reshape(p, (3, 3)), np.reshape(q, (3, 3))
        np.testing.assert_allclose(np.reshape(product(p, q), (3, 3)), matrices[0] @ matrices[1], atol=1e-14)
        np.testing.assert_array_equal(np.reshape(transpose(p), (3, 3)), matrices[0].T)
        np.testing.assert_allclose(turned(p, *second), matrices[0] @ second, atol=1e-14)
