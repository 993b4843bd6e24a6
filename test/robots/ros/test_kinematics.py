"""The kinematics of a URDF against those that the project has of two arms, by another way."""

import math
from dataclasses import replace

import numpy as np
import pytest
from franka_urdf import FRANKA_HOME, franka_urdf

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.franka.kinematics import FLANGE, HAND, forward
from bid_ros.robots.registry import load_arm_config
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.kinematics import SHARE, ChainKinematics, arm_model, kinematics_of, margin
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.streams import TimedTarget, braking
from bid_ros.robots.ros.twin.description import NAMES, arm_urdf
from bid_ros.robots.ros.urdf import read_chain, serial_chain
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.twin.model import HOME_Q


@pytest.fixture(scope="module")
def ur():
    return ChainKinematics(read_chain(arm_urdf(), "base_link", "tool0", "the twin"))


@pytest.fixture(scope="module")
def franka():
    length, turn = HAND
    tool = (0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2))
    return ChainKinematics(read_chain(franka_urdf(), "link0", "link7", "x"), (0.0, 0.0, FLANGE + length), tool)


def test_the_tool_is_where_the_project_puts_it(ur, franka):
    random = np.random.default_rng(3)
    for _ in range(20):
        joints = random.uniform(-2, 2, 6)
        assert ur.forward(joints)[0] == pytest.approx(UR5E.forward(joints)[:3], abs=1e-12)
        assert ur.jacobian(joints) == pytest.approx(UR5E.jacobian(joints), abs=1e-12)
        seven = random.uniform(-2, 2, 7)
        for mine, theirs in zip(franka.forward(seven), forward(seven), strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)


def test_the_inverse_finds_the_posture_that_is_near(ur):
    random, home = np.random.default_rng(4), np.array(HOME_Q)
    for _ in range(20):
        wanted = home + random.uniform(-0.1, 0.1, 6)
        reached = ur.inverse(*ur.forward(wanted), home)
        assert reached.off_m < 1e-6 and reached.off_rad < 1e-6
        assert reached.joints == pytest.approx(wanted, abs=1e-5)


def test_a_pose_out_of_reach_tells_how_far_off_the_nearest_is(ur):
    reached = ur.inverse(np.array([2.0, 0.0, 0.3]), np.eye(3), np.array(HOME_Q))
    assert np.isfinite(reached.joints).all() and reached.off_m > 0.5


def test_speeds_move_the_tool_with_the_twist(ur):
    joints, twist = np.array(HOME_Q), np.array([0.1, -0.2, 0.05, 0.2, 0.1, -0.3])
    step = 1e-5 * ur.speeds(joints, twist)
    (before, turned), (after, turned_on) = ur.forward(joints), ur.forward(joints + step)
    assert (after - before) / 1e-5 == pytest.approx(twist[:3], abs=1e-4)
    assert turned_on == pytest.approx(matrix_from_vector(1e-5 * twist[3:]) @ turned, abs=1e-8)


def test_an_arm_of_seven_joints_comes_back_to_its_posture_while_the_tool_stands(franka):
    position, rotation = franka.forward(FRANKA_HOME)
    joints = franka.inverse(position, rotation, FRANKA_HOME + 0.05).joints
    away = float(np.abs(joints - FRANKA_HOME).max())
    for turn in range(200):
        moved = position + np.array([0.0, 0.0, 1e-4 * (turn % 2)])  # a tool at rest is never iterated for
        reached = franka.inverse(moved, rotation, joints, FRANKA_HOME)
        assert reached.off_m < 1e-5
        joints = reached.joints
    assert np.abs(joints - FRANKA_HOME).max() < 0.3 * away


def test_the_pull_to_the_posture_is_as_small_as_it_is_asked_to_be(franka):
    away = FRANKA_HOME + np.array([0.8, 0.3, -0.8, 0.0, 0.3, 0.0, 0.0])
    position, rotation = franka.forward(away)
    wanted = position + np.array([0.0, 0.0, 0.01])
    free = franka.inverse(wanted, rotation, away).joints
    for most in (1e-4, 1e-3):
        reached = franka.inverse(wanted, rotation, away, FRANKA_HOME, np.full(7, most))
        assert reached.off_m < 1e-5
        assert 0.5 * most < np.abs(reached.joints - free).max() < 1.5 * most


def test_an_arm_of_few_joints_reaches_places_where_its_turn_counts_little():
    text = arm_urdf().replace('name="wrist_3_joint" type="revolute"', 'name="wrist_3_joint" type="fixed"')
    five = ChainKinematics(read_chain(text, "base_link", "tool0", "x"), rotation_weight=0.01)
    position, rotation = five.forward(np.array(HOME_Q)[:5])
    reached = five.inverse(position + np.array([0.03, 0.02, 0.01]), rotation, np.array(HOME_Q)[:5])
    assert five.joints == 5 and reached.off_m < 0.001


def test_a_tool_that_was_measured_elsewhere_is_placed_there_and_the_error_shrinks_all_around(ur):
    own = replace(UR5E, d1=UR5E.d1 + 0.003, a2=UR5E.a2 - 0.004, d4=UR5E.d4 + 0.002)
    real = ChainKinematics(read_chain(arm_urdf(own), "base_link", "tool0", "the robot"))
    fitted, home = ChainKinematics(read_chain(arm_urdf(), "base_link", "tool0", "the twin")), np.array(HOME_Q)
    for _ in range(2):
        off_m, off_rad = fitted.fit(home, *real.forward(home))
        assert off_m == pytest.approx(np.linalg.norm(real.forward(home)[0] - ur.forward(home)[0])) and off_m > 0.003
        assert off_rad < 1e-6
        assert fitted.forward(home)[0] == pytest.approx(real.forward(home)[0], abs=1e-12)
    near = home + 0.2 * np.array([1, -1, 1, 1, -1, 1])
    was, remains = (np.linalg.norm(model.forward(near)[0] - real.forward(near)[0]) for model in (ur, fitted))
    assert remains < 0.5 * was


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
