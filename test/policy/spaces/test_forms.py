"""The forms of rotations, held against SciPy."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from space_samples import PLACE, six

from bid_ros.core.errors import BundleError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, vector_from_matrix
from bid_ros.policy.spaces.config import Part
from bid_ros.policy.spaces.forms import from_euler, from_quaternion, rotation_form, to_euler, value_form

TURNS = Rotation.random(40, rng=np.random.default_rng(0))
MATRICES = TURNS.as_matrix().reshape(5, 8, 3, 3)
ORDERS = [order for axes in permutations("xyz") for order in ("".join(axes), "".join(axes).upper())]


def test_quaternions_and_rotation_vectors_are_those_of_scipy():
    np.testing.assert_allclose(from_quaternion(3.0 * TURNS.as_quat().reshape(5, 8, 4)), MATRICES, atol=1e-14)
    np.testing.assert_allclose(matrix_from_vector(TURNS.as_rotvec().reshape(5, 8, 3)), MATRICES, atol=1e-14)
    np.testing.assert_allclose(vector_from_matrix(MATRICES), TURNS.as_rotvec().reshape(5, 8, 3), atol=1e-12)


def test_six_numbers_are_those_of_the_gram_schmidt_process():
    raw = np.random.default_rng(0).uniform(-1, 1, (5, 8, 6))  # no rotations
    first, second = raw[..., :3], raw[..., 3:]
    first = first / np.linalg.norm(first, axis=-1, keepdims=True)
    second = second - np.sum(first * second, axis=-1, keepdims=True) * first
    second = second / np.linalg.norm(second, axis=-1, keepdims=True)
    wanted = np.stack([first, second, np.cross(first, second)], axis=-1)
    np.testing.assert_allclose(matrix_from_6d(raw), wanted, atol=1e-14)
    np.testing.assert_array_equal(matrix_from_6d(np.zeros((1, 6))), np.zeros((1, 3, 3)))


def test_nothing_turned_has_no_length():
    np.testing.assert_array_equal(matrix_from_vector(np.zeros((1, 3))), np.eye(3)[None])
    np.testing.assert_array_equal(vector_from_matrix(np.eye(3)[None]), np.zeros((1, 3)))
    np.testing.assert_array_equal(from_quaternion(np.zeros((1, 4))), np.eye(3)[None])


@pytest.mark.parametrize("order", ORDERS)
def test_euler_angles_are_those_of_scipy(order):
    wanted = TURNS.as_euler(order).reshape(5, 8, 3)
    np.testing.assert_allclose(from_euler(wanted, order), MATRICES, atol=1e-14)
    np.testing.assert_allclose(to_euler(MATRICES, order), wanted, atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("off", [0.0, 1e-9, -1e-9])
def test_euler_angles_hold_a_rotation_in_gimbal_lock(order, off):
    angles = np.array([[0.3, np.pi / 2 + off, -1.2], [2.0, -np.pi / 2 + off, 0.4]])
    matrix = from_euler(angles, order)
    np.testing.assert_allclose(from_euler(to_euler(matrix, order), order), matrix, atol=1e-12)


@pytest.mark.parametrize(
    ("form", "columns"),
    [
        ("rotation_6d", six(TURNS)),
        ("rotation_6d_rows", TURNS.as_matrix()[:, :2].reshape(-1, 6)),  # PyTorch3D's
        ("matrix", TURNS.as_matrix().reshape(-1, 9)),
        ("quaternion_xyzw", TURNS.as_quat(canonical=True)),
        ("quaternion_wxyz", TURNS.as_quat(canonical=True, scalar_first=True)),
        ("rotation_vector", TURNS.as_rotvec()),
    ],
)
def test_each_form_is_that_of_scipy(form, columns):
    found = rotation_form(form)
    np.testing.assert_allclose(found.matrix(columns), TURNS.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(found.columns(TURNS.as_matrix()), columns, atol=1e-12)


def test_angles_in_degrees():
    np.testing.assert_allclose(
        rotation_form("euler", "ZYX", degrees=True).columns(TURNS.as_matrix()),
        TURNS.as_euler("ZYX", degrees=True),
        atol=1e-10,
    )
    np.testing.assert_allclose(
        rotation_form("rotation_vector", degrees=True).matrix(np.rad2deg(TURNS.as_rotvec())),
        TURNS.as_matrix(),
        atol=1e-14,
    )


@pytest.mark.parametrize("positive", "xyzw")
def test_the_component_that_is_positive_can_be_chosen(positive):
    found = rotation_form("quaternion_xyzw", positive=positive).columns(TURNS.as_matrix())
    assert (found[:, "xyzw".index(positive)] >= 0).all()
    np.testing.assert_allclose(from_quaternion(found), TURNS.as_matrix(), atol=1e-14)
    wxyz = rotation_form("quaternion_wxyz", positive=positive).columns(TURNS.as_matrix())
    np.testing.assert_array_equal(wxyz, found[:, [3, 0, 1, 2]])


def test_a_number_that_is_none_stays_none():
    for form, size in (("quaternion_wxyz", 4), ("rotation_vector", 3), ("rotation_6d_rows", 6), ("matrix", 9)):
        assert np.isnan(rotation_form(form).matrix(np.full((1, size), np.nan))).any()


def test_columns_in_a_unit_become_rad_and_m():
    limits = PLACE.limits
    arm, grip, tool = Feature("arm", "joints", (2,)), Feature("grip", "gripper"), Feature("tool", "position")
    for feature, unit, columns, expected in (
        (arm, "deg", [90.0, -180.0], [np.pi / 2, -np.pi]),
        (grip, "percent", [50.0], [(limits.gripper_min + limits.gripper_max) / 2]),
        (tool, "mm", [1.0, 2.0, 3.0], [0.001, 0.002, 0.003]),
    ):
        form = value_form(Part(feature=feature.name, unit=unit), feature, limits)
        np.testing.assert_allclose(form.task(np.array(columns)), expected)
        np.testing.assert_allclose(form.network(np.array(expected)), columns)
    step = value_form(
        Part(feature="grip", unit="percent", reference="observed"), grip, replace(limits, gripper_min=0.01)
    )
    np.testing.assert_allclose(step.task(np.array([0.0])), [0.0])
    with pytest.raises(BundleError, match="space: unit of 'arm' is 'mm'; valid for joints are rad, deg"):
        value_form(Part(feature="arm", unit="mm"), arm, limits)
    with pytest.raises(BundleError, match=r"'arm' has unit 'deg', which form 'values' with .* leave it out"):
        Part(feature="arm", unit="deg", scale=2.0)
