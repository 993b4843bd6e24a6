"""From a network's rows to the task's action, and back."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from space_samples import PLACE, random_chunks, random_observation, six

from bid_ros.core.errors import BundleError
from bid_ros.core.feature import Feature
from bid_ros.policy.spaces.action import ActionConversion
from bid_ros.policy.spaces.config import ROTATIONS, Part, Space
from bid_ros.policy.spaces.grid import grid_of

POSITION, ROTATION, GRIPPER = (
    Part(feature="tool_position"),
    Part(feature="tool_rotation"),
    Part(feature="gripper_width"),
)
RELATIVE = [
    {},
    *({"reference": name, "axes": axes} for name in ("observed", "previous") for axes in ("base", "tool")),
]


def conversion(*parts, task=PLACE, **space):
    described = Space(action=parts, **space)
    return ActionConversion(described, task, grid_of(described, task))


def observed(seed=1, steps=2):
    return random_observation(np.random.default_rng(seed), steps).values


def there_and_back(found, seed=0):
    """Return chunks, and what comes back of them."""
    chunks, anchor = random_chunks(np.random.default_rng(seed)), found.anchor(observed())
    return chunks, found.to_task(found.to_network(chunks, anchor), anchor)


@pytest.mark.parametrize("form", ROTATIONS)
@pytest.mark.parametrize("relative", RELATIVE, ids=lambda item: "-".join(item.values()) or "absolute")
def test_every_form_and_reference_gives_the_chunk_back(form, relative):
    order = {"order": "zyx"} if form == "euler" else {}
    parts = Part(feature="tool_position", **relative), Part(feature="tool_rotation", form=form, **order, **relative)
    chunks, back = there_and_back(conversion(GRIPPER, *parts))
    np.testing.assert_allclose(back, chunks, atol=1e-9)


@pytest.mark.parametrize("axes", ["base", "tool"])
def test_velocities_give_the_chunk_back(axes):
    moving = {"reference": "velocity", "axes": axes}
    parts = Part(feature="tool_position", **moving), Part(feature="tool_rotation", form="rotation_vector", **moving)
    chunks, back = there_and_back(conversion(*parts, Part(feature="gripper_width", reference="velocity")))
    np.testing.assert_allclose(back, chunks, atol=1e-9)


@pytest.mark.parametrize(
    "gripper",
    [
        {"scale": 1000.0},
        {"scale": (0.5,), "offset": (0.01,)},
        {"form": "fraction"},
        {"form": "fraction", "open": -1.0, "closed": 1.0},
        {"form": "open_close"},
        {"form": "open_close", "open": -1.0, "closed": 1.0},
        {"reference": "observed"},
        {"reference": "previous"},
    ],
)
def test_every_form_of_a_gripper_gives_the_chunk_back(gripper):
    chunks, back = there_and_back(conversion(POSITION, ROTATION, Part(feature="gripper_width", **gripper)))
    np.testing.assert_allclose(back, chunks, atol=1e-9)


def test_columns_stand_where_the_network_has_them():
    found = conversion(
        Part(feature="gripper_width", at=(4,)),
        Part(feature="tool_position", at=(2, 0, 1)),
        Part(feature="tool_rotation", form="quaternion_wxyz", at=(5, 6, 7, 3)),
    )
    chunks = random_chunks(np.random.default_rng(0))
    network = found.to_network(chunks, {})
    quaternion = Rotation.from_matrix(_matrices(chunks)).as_quat(canonical=True).reshape(4, 16, 4)
    wanted = np.concatenate(
        [chunks[..., [1, 2, 0]], quaternion[..., 2:3], chunks[..., 9:], quaternion[..., [3, 0, 1]]], axis=-1
    )
    assert found.size == 8
    np.testing.assert_allclose(network, wanted, atol=1e-9)


def test_relative_to_the_tool_is_its_transform():
    """T_k = T_observed T_relative, with homogeneous matrices by SciPy."""
    near = {"reference": "observed", "axes": "tool"}
    parts = Part(feature="tool_position", **near), Part(feature="tool_rotation", form="quaternion_xyzw", **near)
    found, seen, rng = conversion(*parts, GRIPPER), observed(), np.random.default_rng(3)
    turns, moves = Rotation.random(64, rng=rng), rng.uniform(-0.1, 0.1, (64, 3))
    predicted = np.concatenate([moves, turns.as_quat(), np.zeros((64, 1))], axis=1).reshape(4, 16, 8)
    now = Rotation.from_matrix(_matrices(seen["tool_rotation"][-1]))
    chunks = found.to_task(predicted, found.anchor(seen)).reshape(64, 10)
    np.testing.assert_allclose(chunks[:, :3], seen["tool_position"][-1] + now.apply(moves), atol=1e-12)
    np.testing.assert_allclose(chunks[:, 3:9], six(now * turns), atol=1e-12)


def test_steps_in_the_base_frame_add_up_from_what_is_observed():
    steps = {"reference": "previous"}
    parts = Part(feature="tool_position", **steps), Part(feature="tool_rotation", form="euler", order="xyz", **steps)
    found, seen, rng = conversion(*parts, GRIPPER), observed(), np.random.default_rng(3)
    moves, angles = rng.uniform(-0.1, 0.1, (16, 3)), rng.uniform(-0.3, 0.3, (16, 3))
    chunk = found.to_task(np.concatenate([moves, angles, np.zeros((16, 1))], axis=1)[None], found.anchor(seen))[0]
    for row in range(16):  # row 1 is the current one: rows up to it count from what is observed at them
        from_position = seen["tool_position"][row] if row < 2 else chunk[row - 1, :3]
        before = _matrices(seen["tool_rotation"][row] if row < 2 else chunk[row - 1, 3:9])
        turned = Rotation.from_euler("xyz", angles[row]) * Rotation.from_matrix(before)
        np.testing.assert_allclose(chunk[row, :3], from_position + moves[row], atol=1e-12)
        np.testing.assert_allclose(chunk[row, 3:9], six(turned)[0], atol=1e-12)


def test_steps_along_the_tool_turn_with_it():
    steps = {"reference": "previous", "axes": "tool"}
    parts = Part(feature="tool_position", **steps), Part(feature="tool_rotation", form="rotation_vector", **steps)
    found, seen, rng = conversion(*parts, GRIPPER), observed(), np.random.default_rng(3)
    moves, turns = rng.uniform(-0.1, 0.1, (16, 3)), rng.uniform(-0.3, 0.3, (16, 3))
    chunk = found.to_task(np.concatenate([moves, turns, np.zeros((16, 1))], axis=1)[None], found.anchor(seen))[0]
    for row in range(16):
        from_position = seen["tool_position"][row] if row < 2 else chunk[row - 1, :3]
        before = Rotation.from_matrix(_matrices(seen["tool_rotation"][row] if row < 2 else chunk[row - 1, 3:9]))
        np.testing.assert_allclose(chunk[row, :3], from_position + before.apply(moves[row]), atol=1e-12)
        np.testing.assert_allclose(chunk[row, 3:9], six(before * Rotation.from_rotvec(turns[row]))[0], atol=1e-12)


def test_velocities_of_joints_are_integrated_from_the_newest_ones():
    joints = (Feature("joints", "joints"),)
    task = replace(PLACE, observation=joints, action=joints)
    found = conversion(Part(feature="joints", reference="velocity"), task=task, rate_hz=20.0, past_rows=0, horizon=40)
    seen, speeds = np.arange(14.0).reshape(2, 7), np.random.default_rng(0).uniform(-1, 1, (3, 40, 7))
    chunks = found.to_task(speeds, found.anchor({"joints": seen}))
    np.testing.assert_allclose(chunks, seen[-1] + np.cumsum(speeds * 0.05, axis=1), atol=1e-12)


def test_a_gripper_is_open_or_closed():
    found = conversion(POSITION, ROTATION, Part(feature="gripper_width", form="open_close", open=-1.0, closed=1.0))
    row = np.zeros((1, 5, 10))
    row[0, :, 9] = [-3.0, -0.1, 0.1, 3.0, np.nan]
    np.testing.assert_array_equal(found.to_task(row, {})[0, :, 9], [0.08, 0.08, 0.0, 0.0, np.nan])
    assert found.switched == [slice(9, 10)] and not found.linear


def test_what_is_not_predicted_is_held_or_fixed():
    found, seen = conversion(POSITION, held=("tool_rotation",), fixed={"gripper_width": (0.05,)}), observed()
    chunks = found.to_task(np.zeros((3, 16, 3)), found.anchor(seen))
    np.testing.assert_allclose(chunks[..., 3:9], np.broadcast_to(seen["tool_rotation"][-1], (3, 16, 6)), atol=1e-12)
    assert (chunks[..., 9] == 0.05).all() and found.size == 3 and found.linear


def test_another_feature_can_be_counted_from():
    named = replace(PLACE, action=(Feature("goal", "position"), *PLACE.action[1:]))
    found = conversion(
        Part(feature="goal", reference="observed", observed="tool_position"), ROTATION, GRIPPER, task=named
    )
    seen = observed()
    chunks = found.to_task(np.zeros((1, 16, 10)), found.anchor(seen))
    np.testing.assert_array_equal(chunks[0, 4, :3], seen["tool_position"][-1])


def test_ignored_columns_come_to_nothing():
    found = conversion(
        Part(ignored=2, at=(0, 11)),
        Part(feature="tool_position", at=(1, 2, 3)),
        Part(feature="tool_rotation", at=(4, 5, 6, 7, 8, 9)),
        Part(feature="gripper_width", at=(10,)),
    )
    predicted = np.random.default_rng(0).uniform(size=(2, 16, 12))
    np.testing.assert_array_equal(found.to_task(predicted, {}), predicted[..., 1:11])
    assert not found.linear  # they have no way back


def test_more_past_rows_than_observed_steps_count_from_the_oldest():
    found = conversion(
        Part(feature="tool_position", reference="previous"), ROTATION, GRIPPER, observation_steps=2, past_rows=3
    )
    seen = observed()
    anchor = found.anchor(seen)["tool_position"]
    np.testing.assert_array_equal(anchor, seen["tool_position"][[0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("parts", "linear", "row_wise"),
    [
        ((POSITION, ROTATION, GRIPPER), True, True),
        ((Part(feature="tool_position", reference="observed"), ROTATION, GRIPPER), True, True),
        ((Part(feature="tool_position", reference="observed", axes="tool"), ROTATION, GRIPPER), True, True),
        ((Part(feature="tool_position", reference="previous"), ROTATION, GRIPPER), True, False),
        ((Part(feature="tool_position", reference="previous", axes="tool"), ROTATION, GRIPPER), False, False),
        ((POSITION, Part(feature="tool_rotation", form="quaternion_xyzw"), GRIPPER), False, False),
        ((POSITION, ROTATION, Part(feature="gripper_width", form="fraction")), True, True),
        ((POSITION, ROTATION, Part(feature="gripper_width", form="open_close")), False, False),
    ],
)
def test_which_ways_back_are_exact(parts, linear, row_wise):
    found = conversion(*parts)
    assert (found.linear, found.row_wise) == (linear, row_wise)
    if linear:  # of any numbers, also those that are no rotation
        chunks, anchor = np.random.default_rng(0).uniform(-1, 1, (2, 16, 10)), found.anchor(observed())
        np.testing.assert_allclose(found.to_task(found.to_network(chunks, anchor), anchor), chunks, atol=1e-12)


@pytest.mark.parametrize(
    ("space", "match"),
    [
        (
            {"action": (Part(feature="arm"),)},
            "names 'arm', which task 'franka_place' does not command; valid are ",
        ),
        ({"action": (POSITION, ROTATION)}, "does not say where 'gripper_width' comes from; valid is a part of the row"),
        ({"action": (POSITION, POSITION, ROTATION, GRIPPER)}, "names 'tool_position' 2 times; valid is once"),
        ({"action": (POSITION, ROTATION, GRIPPER), "held": ("gripper_width",)}, "names 'gripper_width' 2 times"),
        ({"action": (POSITION, ROTATION), "fixed": {"gripper_width": (0.1, 0.2)}}, "has 2 numbers .* valid are 1"),
        ({"action": (Part(constant=(1.0,)), POSITION, ROTATION, GRIPPER)}, "a part is constant; valid are a feature"),
        (
            {"action": (Part(feature="tool_position", form="euler", order="xyz"), ROTATION, GRIPPER)},
            "'tool_position', a position, has form 'euler'; valid are values",
        ),
        (
            {"action": (POSITION, Part(feature="tool_rotation", form="fraction"), GRIPPER)},
            "'tool_rotation', a rotation_6d, has form 'fraction'; valid are rotation_6d, rotation_6d_rows, matrix,",
        ),
        (
            {"action": (Part(feature="tool_position", scale=(1.0, 2.0)), ROTATION, GRIPPER)},
            "scale of 'tool_position' has 2 numbers; valid are 1 and 3, one for each value",
        ),
        (
            {"action": (Part(feature="tool_position", at=(0, 1)), ROTATION, GRIPPER)},
            "'tool_position' is at 2 columns, .0, 1.; valid are 3",
        ),
        (
            {"action": (Part(feature="tool_position", at=(0, 1, 4)), ROTATION, GRIPPER)},
            "the columns 0, 1, 4, 5, .*; valid is each from 0 to 9 once",
        ),
        (
            {"action": (Part(feature="tool_position", reference="observed", observed="hand"), ROTATION, GRIPPER)},
            "reference 'observed' of 'tool_position' needs the observed position 'hand'; valid are tool_position",
        ),
        (
            {"action": (POSITION, Part(feature="tool_rotation", reference="velocity"), GRIPPER)},
            "'tool_rotation' has form 'rotation_6d' and reference 'velocity'; valid are values and rotation_vector",
        ),
        (
            {"action": (POSITION, ROTATION, Part(feature="gripper_width", form="fraction", reference="observed"))},
            "form 'fraction' and reference 'observed'; valid is absolute",
        ),
        (
            {"action": (POSITION, ROTATION, Part(feature="gripper_width", reference="observed", axes="tool"))},
            "'gripper_width', a gripper, has axes 'tool'; valid are those of a position or rotation",
        ),
        (
            {
                "action": (
                    Part(feature="tool_position", reference="observed", axes="tool", rotation="hand"),
                    ROTATION,
                    GRIPPER,
                )
            },
            "axes 'tool' of 'tool_position' need the observed rotation 'hand'; valid are tool_rotation",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(space, match):
    described = Space(**space)
    with pytest.raises(BundleError, match=match) as caught:
        ActionConversion(described, PLACE, grid_of(described, PLACE))
    assert "\n" not in str(caught.value)


def test_what_is_counted_from_must_be_observed():
    blind = replace(PLACE, observation=PLACE.cameras)
    with pytest.raises(BundleError, match="valid are none, for the task observes no such feature"):
        conversion(Part(feature="tool_position", reference="observed"), ROTATION, GRIPPER, task=blind)
    with pytest.raises(BundleError, match="held of 'tool_rotation' needs the observed rotation_6d 'tool_rotation'"):
        conversion(POSITION, GRIPPER, held=("tool_rotation",), task=blind)
    with pytest.raises(BundleError, match="'tool_rotation' of the action has reference 'start'; valid"):
        conversion(POSITION, Part(feature="tool_rotation", reference="start"), GRIPPER)


def _matrices(values):
    """Rotation matrices of the rotations in chunks, or of six numbers."""
    numbers = np.asarray(values)[..., 3:9] if np.shape(values)[-1] == 10 else np.asarray(values)
    first, second = numbers[..., :3].reshape(-1, 3), numbers[..., 3:].reshape(-1, 3)
    found = np.stack([first, second, np.cross(first, second)], axis=-1)
    return found[0] if numbers.ndim == 1 else found
