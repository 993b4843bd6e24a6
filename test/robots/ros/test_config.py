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


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"joint_min": (-180.0,)}, r"joint_min\[0\] is -180\.0; valid is a number from -12\.6 to 12\.6"),
        ({"joint_max": (180.0,)}, r"joint_max\[0\] is 180\.0; valid is a number from -12\.6 to 12\.6"),
        ({"home": (90.0,)}, r"home\[0\] is 90\.0; valid is a number from -12\.6 to 12\.6"),
        ({"joint_speed": (60.0,)}, r"joint_speed\[0\] is 60\.0; valid is a number above 0 and up to 10"),
        ({"tool_offset": (0.0, 0.0, 170.0)}, r"tool_offset\[2\] is 170\.0; valid is a number from -1 to 1"),
    ],
)
def test_what_is_in_degrees_or_mm_is_refused(parts, said):
    with pytest.raises(ArmError, match=said):
        RosConfig("arm", ("a",), **parts)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"joint_states": "joint states"}, "joint_states is 'joint states'; valid is a ROS name of up to 144"),
        ({"command_topic": ""}, "command_topic is ''; valid is a ROS name"),
        ({"activity": "a/"}, "activity is 'a/'; valid is a ROS name"),
        ({"tool_pose": "tf", "tf_tool": "hand", "tf": ""}, "tf is ''; valid is a ROS name"),
        (
            {"urdf": "arm.urdf.xacro"},
            r"urdf is 'arm\.urdf\.xacro'; valid is a ROS name .*, or a file that ends in \.urdf",
        ),
    ],
)
def test_what_is_no_topic_is_refused(parts, said):
    with pytest.raises(ArmError, match=f"ros: {said}"):
        RosConfig("arm", ("a",), **parts)
    RosConfig("arm", ("a",), controller="", activity="", list_controllers="", tf="", urdf="cells/arm 1.urdf")


def test_a_gripper_that_never_opens_as_far_as_open_is_refused():
    narrow = RosGripperConfig("g", "j", open_position=0.0, closed_position=0.3, open_width=0.05)
    with pytest.raises(ArmError, match=r"open_above is 0\.06 m, and the gripper opens to 0\.05 m; valid is up to that"):
        RosConfig("arm", ("a",), gripper=narrow)


def test_a_gripper_between_two_equal_positions_is_refused():
    with pytest.raises(ArmError, match=r"open_position and closed_position are both 0\.3"):
        RosGripperConfig("g", "j", open_position=0.3, closed_position=0.3, open_width=0.1)
