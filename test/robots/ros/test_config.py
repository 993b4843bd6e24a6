"""Fields of the configuration that do not fit each other."""

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ros.config import RosConfig, RosGripperConfig


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"motion": "action", "command": "pose"},
            "motion is 'action' and command 'pose'; valid is motion: action with",
        ),
        ({"twist_lag_s": 0.1}, "twist_lag_s is 0.1 and command 'joint_trajectory'; valid is 0 but for command: twist"),
        (
            {"tf_tool": "tool0_controller"},
            "tf_tool are '' and 'tool0_controller'; valid with tool_pose: urdf are empty",
        ),
        (
            {"tool_pose": "tf", "tf_tool": "base_link"},
            "base and tool are both the frame 'base_link'; valid are tf_base",
        ),
        ({"tool_pose": "tf", "tf_tool": "/base_link"}, "base and tool are both the frame 'base_link'"),
    ],
)
def test_fields_that_would_have_no_effect_are_refused(parts, said):
    with pytest.raises(ArmError, match=f"ros: .*{said}") as caught:
        RosConfig("arm", ("a",), **parts)
    assert "\n" not in str(caught.value)


def test_a_gripper_between_two_equal_positions_is_refused():
    with pytest.raises(ArmError, match=r"open_position and closed_position are both 0\.3"):
        RosGripperConfig("g", "j", open_position=0.3, closed_position=0.3, open_width=0.1)
