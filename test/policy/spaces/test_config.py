"""The section ``space`` of bundle.yaml."""

import pytest

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import parse_settings
from bid_ros.policy.manifest import written
from bid_ros.policy.spaces.config import Part, Space

FULL = {
    "observation": [
        {
            "name": "observation.state",
            "columns": [
                {"feature": "tool_position", "scale": 0.001},
                {"feature": "tool_rotation", "form": "quaternion_xyzw", "positive": "x"},
                {"constant": [0.0, 1.0]},
            ],
        },
        {"name": "observation.images.wrist", "camera": "wrist", "size": [84, 96]},
    ],
    "action": [
        {"feature": "tool_position", "at": [3, 4, 5], "reference": "observed", "axes": "tool"},
        {"feature": "gripper_width", "at": [0], "form": "open_close", "open": -1.0, "closed": 1.0},
        {"ignored": 2, "at": [1, 2]},
    ],
    "held": ["tool_rotation"],
    "observation_steps": 5,
    "horizon": 64,
    "past_rows": 0,
    "rate_hz": 30.0,
}


def parsed(**changes):
    return parse_settings(Space, {**FULL, **changes}, "space")


def test_a_section_is_read_and_written():
    space = parsed()
    assert space.observation[0].columns[1] == Part(feature="tool_rotation", form="quaternion_xyzw", positive="x")
    assert space.observation[1].size == (84, 96) and space.action[0].at == (3, 4, 5)
    assert written(space) == FULL  # what has its default is left out
    assert written(Space()) == {}


def test_fixed_values_are_written():
    space = Space(action=(Part(feature="tool_position"),), fixed={"gripper_width": (0.04,)})
    assert written(space) == {"action": [{"feature": "tool_position"}], "fixed": {"gripper_width": [0.04]}}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"colour": "red"}, "unknown field 'colour'; valid are observation, action, held, fixed, observation_steps"),
        ({"rate_hz": 0}, "rate_hz is 0; valid is a number from 0.1 to 1000"),
        ({"horizon": 0}, "horizon is 0; valid is a whole number"),
        ({"past_rows": -1}, "past_rows is -1; valid is a whole number"),
        ({"rate_hz": float("nan")}, "rate_hz is nan; valid is a number"),
        ({"action": [{"feature": "x", "form": "roll"}]}, "form is 'roll'; valid is one of values, rotation_6d"),
        ({"action": [{"feature": "x", "scale": float("nan")}]}, "scale is nan; valid is"),
        ({"action": [{"feature": "x", "scale": 0.0}]}, "scale of 'x' is 0.0; valid are numbers other than 0"),
        ({"action": [{"feature": "x", "scale": [1.0, 0.0]}]}, "scale of 'x' is .1.0, 0.0.; valid are numbers other"),
        ({"action": [{"feature": "x", "constant": [1.0]}]}, "valid is exactly one of the three"),
        ({"action": [{"at": [0]}]}, "a part has feature '', constant .. and ignored 0; valid is exactly one"),
        ({"action": [{"feature": "x", "form": "euler"}]}, "order of 'x' is ''; valid for euler are three different"),
        ({"action": [{"feature": "x", "form": "euler", "order": "xyx"}]}, "order of 'x' is 'xyx'; valid for euler"),
        ({"action": [{"feature": "x", "form": "euler", "order": "xYz"}]}, "order of 'x' is 'xYz'; valid for euler"),
        ({"action": [{"feature": "x", "order": "xyz"}]}, "'x' has order 'xyz', which form 'values' .* leave it out"),
        ({"action": [{"feature": "x", "open": 2.0}]}, "'x' has open 2.0, which form 'values' .* does not use"),
        ({"action": [{"feature": "x", "form": "fraction", "open": 0.0}]}, "open and closed of 'x' are both 0.0"),
        ({"action": [{"feature": "x", "axes": "tool"}]}, "'x' has axes 'tool', which .* reference 'absolute' does not"),
        ({"action": [{"feature": "x", "reference": "observed", "offset": 1.0}]}, "'x' has offset 1.0, which"),
        ({"action": [{"feature": "x", "reference": "world"}]}, "reference is 'world'; valid is one of absolute, obs"),
        ({"action": [], "held": ["x"]}, "held and fixed say what the network does not predict, but action does not"),
        ({"observation": [{"name": "a"}]}, "input 'a' has neither camera nor columns; valid is either"),
        (
            {"observation": [{"name": "a", "camera": "wrist", "columns": [{"feature": "x"}]}]},
            "input 'a' has camera 'wrist' and columns; valid is either",
        ),
        (
            {"observation": [{"name": "a", "columns": [{"feature": "x"}], "size": [8, 8]}]},
            "input 'a' has a size but no camera",
        ),
        ({"observation": [{"name": "a", "camera": "wrist"}] * 2}, "observation names a, a; valid are different names"),
        (
            {"observation": [{"name": "a", "camera": "wrist", "size": [0, 8]}]},
            "input 'a' has size .0, 8.; valid are a height and a width of at least 1",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(changes, match):
    with pytest.raises(BundleError, match=match) as caught:
        parsed(**changes)
    assert "\n" not in str(caught.value)
