import numpy as np
import pytest

from bid_ros.core.errors import BundleError
from bid_ros.policy.normalise import LinearNormaliser


def test_the_range_maps_to_minus_one_and_one():
    normaliser = LinearNormaliser(np.array([2.0, -1.0]), np.array([6.0, 1.0]))
    np.testing.assert_array_equal(normaliser.normalise([[2, -1], [4, 0], [6, 1]]), [[-1, -1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(normaliser.normalise([8.0, -2.0]), [2, -2])
    assert normaliser.normalise([2.0, 0.0]).dtype == np.float32


def test_denormalise_is_the_inverse():
    rng = np.random.default_rng(0)
    normaliser = LinearNormaliser(np.array([0.3, -0.3, 0.0]), np.array([0.7, 0.3, 0.08]))
    values = rng.uniform(-1, 1, (4, 5, 3))
    np.testing.assert_allclose(normaliser.denormalise(normaliser.normalise(values)), values, atol=1e-6)
    assert normaliser.denormalise(np.zeros((2, 3), np.float32)).dtype == np.float64


def test_arguments_are_copied():
    low = np.zeros(2)
    normaliser = LinearNormaliser(low, np.ones(2))
    low[:] = 5
    np.testing.assert_array_equal(normaliser.minimum, [0, 0])


@pytest.mark.parametrize(
    ("low", "high"), [([0, 1], [1, 1]), ([0], [1, 2]), ([0], [np.inf]), ([np.nan], [1]), ([], []), ([[[0]]], [[[1]]])]
)
def test_impossible_ranges_are_refused(low, high):
    with pytest.raises(BundleError, match="valid is"):
        LinearNormaliser(np.array(low, float), np.array(high, float))


def test_the_normaliser_of_later_rows():
    one, many = LinearNormaliser([0.0], [1.0]), LinearNormaliser([[0.0], [0.0], [0.0]], [[1.0], [2.0], [3.0]])
    assert one.rows(2) is one
    np.testing.assert_array_equal(many.rows(1).maximum, [[2], [3]])
    np.testing.assert_allclose(many.rows(1).normalise([[2.0], [3.0]]), [[1], [1]])
