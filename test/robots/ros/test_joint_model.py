"""What is known of the joints of a robot with a ROS driver before it is connected."""

import math

import numpy as np
import pytest
from franka_urdf import FRANKA_HOME, franka_urdf

from bid_ros.core.errors import ArmError
from bid_ros.robots.registry import load_arm_config
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.kinematics import SHARE, arm_model, kinematics_of, margin
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.streams import TimedTarget, braking
from bid_ros.robots.ros.twin.description import NAMES, arm_urdf
from bid_ros.robots.ros.urdf import read_chain, serial_chain

SLANTED = """<robot name="x"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
<joint name="one" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.1 0 0.2" rpy="0.3 -0.2 1.1"/>
<axis xyz="0 0.6 0.8"/></joint>
<joint name="fixed" type="fixed"><parent link="b"/><child link="c"/><origin xyz="0 0.2 0" rpy="1 0 0.5"/></joint>
<joint name="two" type="revolute"><parent link="c"/><child link="d"/><axis xyz="-1 0 0"/>
<limit lower="-1" upper="1" velocity="2"/></joint></robot>"""


@pytest.mark.parametrize(
    ("text", "base", "tool"), [(franka_urdf(), "link0", "link7"), (SLANTED, "a", "d"), (SLANTED, "a", "c")]
)
def test_the_tool_is_where_pinocchio_puts_it(text, base, tool):
    chain = read_chain(text, base, tool, "x")
    offset, turn = (0.02, -0.1, 0.17), (0.5, 0.5, 0.5, 0.5)
    config = RosConfig(
        "arm", chain.joint_names, base_link=base, tool_link=tool, tool_offset=offset, tool_quaternion=turn
    )
    known = kinematics_of(config, chain)
    turned = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    found = serial_chain(chain).with_tool(offset, turned)
    for joints in np.random.default_rng(21).uniform(-1.0, 1.0, (5, len(chain.joint_names))):
        position, rotation = known.forward(joints)
        np.testing.assert_allclose(found.forward(joints)[0], position, atol=1e-9)
        np.testing.assert_allclose(found.forward(joints)[1], rotation, atol=1e-9)
        np.testing.assert_allclose(found.jacobian(joints), known.jacobian(joints).reshape(6, -1), atol=1e-9)


def test_a_file_says_joints_limits_and_tool(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(franka_urdf())
    names = read_chain(franka_urdf(), "link0", "link7", "x").joint_names
    given = {"urdf": str(file), "base_link": "link0", "tool_link": "link7", "home": tuple(FRANKA_HOME)}
    model = arm_model(RosConfig("arm", names, joint_acceleration=10.0, **given))
    assert model.limits.names == names and model.rest == tuple(FRANKA_HOME)
    assert model.limits.speed == pytest.approx([SHARE * 2.0] * 7) and model.limits.acceleration == (8.0,) * 7


def test_where_a_joint_of_a_chunk_comes_to_rest_is_nowhere_refused_by_the_driver():
    for ahead_s, acceleration in ((0.04, 5.0), (0.15, 8.0), (0.01, 0.5)):
        given = RosConfig("arm", NAMES, twin=True, ahead_s=ahead_s, joint_acceleration=acceleration)
        model = arm_model(given)
        driver = DriverLimits.of(given, read_chain(arm_urdf(), "base_link", "tool0", "x"))
        for speed in np.linspace(0.0, model.limits.speed[0], 50):
            speeds = np.full(6, speed)
            # As near to its limit as a servo goes that may brake with the model's acceleration.
            joints = np.array(model.limits.high) - speeds**2 / (2 * model.limits.acceleration[0])
            rest = braking(TimedTarget(0, joints, speeds), ahead_s, driver.stopping_s(speeds))
            assert not driver.outside(rest), (ahead_s, acceleration, speed)
        assert margin(given, math.pi) < 0.02 + ahead_s * SHARE * math.pi


@pytest.mark.parametrize(("example", "speed", "inside"), [("ur5e", math.pi, 0.02), ("so101", 2.0, 0.2)])
def test_the_guide_says_how_far_inside_the_limits_of_an_example_chunks_end(root, example, speed, inside):
    config = load_arm_config(root / f"config/new/ros/examples/{example}.yaml", "arm", False, "ros")
    assert margin(config, speed) == pytest.approx(inside, abs=0.006)
    assert f"{inside:g} rad" in (root / "docs/how-to/ros-arm.md").read_text()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"command": "pose"},
            "command is pose, which moves the tool; valid for a task that commands joints are joint_tr",
        ),
        ({"twin": False}, r"urdf is the topic robot_description; valid .* is a file: ros2 param get .* > arm\.urdf"),
        ({"urdf": "nowhere.urdf"}, r"URDF nowhere\.urdf does not exist"),
        ({"joint_names": NAMES[::-1]}, "valid is the order of the URDF from base_link to tool0"),
    ],
)
def test_what_is_not_known_is_one_sentence(parts, said):
    with pytest.raises(ArmError, match=said) as caught:
        arm_model(RosConfig("arm", **{"joint_names": NAMES, "twin": True, **parts}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            SLANTED.replace("0.3 -0.2 1.1", "0.3 -0.2"),
            "origin of joint 'one' of x is '0.3 -0.2'; valid are three numbers",
        ),
        (
            SLANTED.replace("0.1 0 0.2", "0.1 z 0.2"),
            "origin of joint 'one' of x is '0.1 z 0.2'; valid are three numbers",
        ),
        (SLANTED.replace("0 0.6 0.8", "0 0 0"), "axis of joint 'one' of x is 0 0 0; valid is a direction"),
    ],
)
def test_a_urdf_with_impossible_numbers_is_one_sentence(wrong, said):
    with pytest.raises(ArmError, match=said):
        read_chain(wrong, "a", "d", "x")
