"""From the task's observation to the inputs of a network."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from space_samples import PLACE, random_observation

from bid_ros.cameras.image import resize_crop
from bid_ros.core.errors import BundleError
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.observation import ObservationConversion

CAMERA = PLACE.cameras[0].name


def seen(steps=2, seed=0):
    return random_observation(np.random.default_rng(seed), steps)


def state(*parts, steps=2, task=PLACE):
    """Return the columns of a vector of these parts, and the observation that they are of."""
    conversion = ObservationConversion(Space(observation=(ObservedFeature(name="state", columns=parts),)), task)
    found = conversion.to_network(seen(steps)).values["state"]
    assert found.shape == (steps, *conversion.shapes["state"])
    return found, seen(steps).values


def test_without_a_section_the_network_sees_the_task_s_features():
    conversion, observation = ObservationConversion(Space(), PLACE), seen()
    assert conversion.to_network(observation) is observation
    assert conversion.shapes == {item.name: item.shape for item in PLACE.observation}


def test_a_state_is_made_of_parts_in_any_order():
    found, values = state(
        Part(feature="gripper_width", form="fraction", at=(5,)),
        Part(feature="tool_position", scale=0.001, at=(2, 1, 0)),
        Part(feature="tool_rotation", form="rotation_vector", at=(6, 7, 8)),
        Part(constant=(7.0, 8.0), at=(3, 4)),
        steps=5,
    )
    turns = Rotation.from_matrix(_matrices(values["tool_rotation"]))
    np.testing.assert_allclose(found[:, 5], values["gripper_width"][:, 0] / 0.08, atol=1e-12)
    np.testing.assert_allclose(found[:, [2, 1, 0]], values["tool_position"] * 1000, atol=1e-9)
    np.testing.assert_allclose(found[:, 6:], turns.as_rotvec(), atol=1e-9)
    np.testing.assert_array_equal(found[:, 3:5], [[7.0, 8.0]] * 5)


def test_six_numbers_pass_as_they_are():
    found, values = state(Part(feature="tool_rotation"))
    np.testing.assert_array_equal(found, values["tool_rotation"])


@pytest.mark.parametrize("axes", ["base", "tool"])
def test_a_rotation_counts_from_the_start_of_an_episode(axes):
    found, values = state(Part(feature="tool_rotation", form="matrix", reference="start", axes=axes))
    down = Rotation.from_euler("x", 180, degrees=True)  # where the arm is homed
    turns = Rotation.from_matrix(_matrices(values["tool_rotation"]))
    expected = down.inv() * turns if axes == "tool" else turns * down.inv()
    np.testing.assert_allclose(found.reshape(-1, 3, 3), expected.as_matrix(), atol=1e-12)


def test_steps_relative_to_the_newest_are_transforms():
    near = {"reference": "observed", "axes": "tool"}
    found, values = state(
        Part(feature="tool_position", **near), Part(feature="tool_rotation", form="matrix", **near), steps=4
    )
    turns = Rotation.from_matrix(_matrices(values["tool_rotation"]))
    moves = turns[-1].inv().apply(values["tool_position"] - values["tool_position"][-1])
    np.testing.assert_allclose(found[:, :3], moves, atol=1e-12)
    np.testing.assert_allclose(found[:, 3:].reshape(4, 3, 3), (turns[-1].inv() * turns).as_matrix(), atol=1e-12)
    found, values = state(Part(feature="tool_position", reference="observed"))
    np.testing.assert_allclose(found, values["tool_position"] - values["tool_position"][-1], atol=1e-15)


def test_cameras_have_the_network_s_names_order_and_size():
    other = replace(PLACE, observation=(*PLACE.observation, replace(PLACE.cameras[0], name="second")))
    space = Space(
        observation=(
            ObservedFeature(name="images.b", camera="second", size=(24, 32)),
            ObservedFeature(name="images.a", camera=CAMERA),
        )
    )
    conversion, observation = ObservationConversion(space, other), seen()
    values = {**observation.values, "second": observation.values[CAMERA][::-1]}
    found = conversion.to_network(replace(observation, values=values)).values
    assert list(found) == ["images.b", "images.a"] == list(conversion.shapes)
    assert found["images.b"].shape == (2, 24, 32, 3) and found["images.b"].dtype == np.uint8
    np.testing.assert_array_equal(found["images.b"][0], resize_crop(values["second"][0], None, (24, 32)))
    assert found["images.a"] is values[CAMERA]


@pytest.mark.parametrize(
    ("item", "match"),
    [
        ({"camera": "roof"}, "'x' has camera 'roof'; the task's are "),
        ({"columns": (Part(feature="force"),)}, "'x' names 'force', which the task does not observe; valid are tool_p"),
        ({"columns": (Part(ignored=2),)}, "a part is ignored; valid are a feature or constant numbers"),
        (
            {"columns": (Part(feature="tool_position", reference="previous"),)},
            "'tool_position' has reference 'previous'; valid are references absolute, observed and start",
        ),
        (
            {"columns": (Part(feature="tool_position", reference="observed", observed="tool_position"),)},
            "has observed 'tool_position'; valid are",
        ),
        (
            {"columns": (Part(feature="tool_position", reference="observed", axes="tool", rotation="hand"),)},
            "axes 'tool' of 'tool_position' need the observed rotation 'hand'; valid are tool_rotation",
        ),
        ({"columns": (Part(feature="tool_rotation", form="values"),)}, "has form 'values'; valid are rotation_6d"),
        ({"columns": (Part(feature="tool_position", at=(1, 2, 3)),)}, "the columns 1, 2, 3; valid is each from 0 to 2"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(item, match):
    with pytest.raises(BundleError, match=match) as caught:
        ObservationConversion(Space(observation=(ObservedFeature(name="x", **item),)), PLACE)
    assert "\n" not in str(caught.value)


def _matrices(values):
    first, second = values[:, :3], values[:, 3:]
    return np.stack([first, second, np.cross(first, second)], axis=-1)
