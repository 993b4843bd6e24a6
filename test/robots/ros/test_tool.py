"""Where the tool is by the robot's own transforms, through the driver, against a robot whose URDF is off by some mm."""

import math
import time

import numpy as np
import pytest
from memory_bus import MemoryBus, joint_state, transform
from ros_domain import own_domain
from ros_robot import TRAJECTORIES, ros_arm, transform_arm

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.bus import Channel
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.driver import RosArm
from bid_ros.robots.ros.joints import JointReading
from bid_ros.robots.ros.tool import TransformReader, TransformTool
from bid_ros.robots.ros.twin.description import NAMES, StatePublisher, arm_urdf
from bid_ros.robots.ros.twin.manager import DESCRIPTION, JOINT_STATES
from bid_ros.robots.ur.twin.model import HOME_Q

ZERO = np.zeros(3)
QUARTER = matrix_from_vector(np.array([0.0, 0.0, math.pi / 2]))


def publish(bus, *transforms, topic="tf"):
    bus.publish(topic, {"transforms": list(transforms)})


@pytest.fixture(scope="module")
def server(module_servers):
    return module_servers("ros_server.py", str(own_domain()), TRAJECTORIES, "transforms")


@pytest.fixture
def arm(server):
    made = transform_arm(server.address)
    made.connect()
    yield made
    made.close()


def tool_of(bus, **parts):
    made = TransformTool(RosConfig("arm", ("a",), tool_pose="tf", tf="tf", tf_static="fixed", **parts), bus)
    made.begin()
    return made


def reading(stamp_s):
    return JointReading(round(stamp_s * 1e9), np.zeros(1), np.zeros(1), 0.0)


def test_the_tool_is_placed_in_the_frame_that_is_named_and_the_older_stamp_counts():
    bus, now = MemoryBus(), time.time()
    tool = tool_of(bus, tf_base="foot", tf_tool="hand", tool_offset=(0.2, 0.0, 0.0))
    publish(bus, transform("foot", "hand", (1.0, 0.0, 0.0), QUARTER, now - 0.02))
    pose = tool.pose(reading(now))
    assert pose.position == pytest.approx([1.0, 0.2, 0.0]) and pose.rotation == pytest.approx(QUARTER)
    assert pose.stamp_ns == pytest.approx((now - 0.02) * 1e9, abs=1e4)
    assert tool.pose(reading(now - 0.05)).stamp_ns == round((now - 0.05) * 1e9)


def test_an_old_transform_is_one_sentence_that_names_the_frame():
    bus = MemoryBus()
    tool = tool_of(bus, state_timeout_s=0.02)
    assert "from frame 'base_link' to frame 'tool0' came on /tf and /fixed: no frame came" in tool.problem()
    publish(bus, transform("base_link", "tool0", stamp_s=time.time()))
    assert tool.problem() == ""
    end = time.monotonic() + 2.0
    while not (said := tool.problem()) and time.monotonic() < end:
        time.sleep(0.005)
    assert said.startswith("the transform from frame 'base_link' to frame 'tool0' is 0.0 s old: no new one of frame 't")


def test_a_robot_with_a_cartesian_controller_and_transforms_needs_no_urdf():
    config = RosConfig("arm", ("a",), tool_pose="tf", command="pose", command_topic="goal")
    assert not config.needs_urdf
    assert RosConfig("arm", ("a",), command="pose", command_topic="goal").needs_urdf
    assert RosConfig("arm", ("a",), tool_pose="tf").needs_urdf


def test_the_own_kinematics_of_the_robot_count_and_a_start_does_not_move_it(server, arm):
    other = ros_arm(server.address)
    other.connect()
    by_urdf = other.state().tool_position
    other.close()
    state = arm.state()
    off = np.linalg.norm(state.tool_position - by_urdf)
    assert 0.002 < off < 0.01, "the robot's lengths differ from its URDF's"
    arm.start()
    for _ in range(30):
        arm.command(Setpoint(state.tool_position, state.tool_quaternion, ZERO, ZERO))
        time.sleep(0.01)
    assert np.abs(arm.state().joint_positions - state.joint_positions).max() < 1e-3
    assert arm.state().tool_position == pytest.approx(state.tool_position, abs=2e-4)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"tf_tool": "tool1"},
            r"from frame 'base_link' to frame 'tool1' came on /at_.*/tf and /at_.*/tf_static: frame 'tool1' never "
            "came; the frames that came are base_link, forearm_link, shoulder_link",
        ),
        ({"tf": "other", "tf_static": "other_static"}, "'tool0' came on /at_.*/other .*: no frame came at all"),
    ],
)
def test_a_frame_that_never_comes_is_one_sentence(server, parts, said):
    built = transform_arm(server.address, connect_timeout_s=1.0, **parts)
    with pytest.raises(ArmError, match=said) as caught:
        built.connect()
    assert "\n" not in str(caught.value)


def test_a_wrong_frame_is_refused_before_anything_moves(server):
    built = transform_arm(server.address, tf_tool="wrist_3_link")
    built.connect()
    try:
        with pytest.raises(ArmError, match=r"have the tool \d+ mm and .* from where its URDF has it; valid is"):
            built.start()
        assert not built.state().in_control
    finally:
        built.close()


class Robot:
    """Topics of a robot with transforms, in memory, and the driver that is connected to it."""

    def __init__(self):
        self.bus = MemoryBus()
        for channel in (JOINT_STATES, DESCRIPTION):
            self.bus.offer(channel)
            self.bus.listen(channel)
        self.frames = StatePublisher(self.bus, arm_urdf(), "tf", "tf_static")
        config = RosConfig("arm", NAMES, tool_pose="tf", tf="tf", tf_static="tf_static", controller="")
        for name in ("tf", "tf_static"):
            self.bus.listen(Channel(name, "", depth=100))
        self.frames.start()
        self.bus.publish(DESCRIPTION.name, {"data": arm_urdf()})
        self.say()
        self.arm = RosArm(config, self.bus)
        self.arm.connect()

    def say(self, speed=0.0):
        """Tell joints that move at a speed, rad/s, and transforms that are 50 ms older."""
        now, joints = time.time(), np.array(HOME_Q)
        speeds = np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0])
        values = (dict(zip(NAMES, row.tolist(), strict=True)) for row in (joints, speeds))
        self.bus.publish(JOINT_STATES.name, joint_state(now, *values))
        self.frames.publish(round((now - 0.05) * 1e9), joints - 0.05 * speeds)


def test_an_arm_that_moves_is_not_started_since_its_transforms_are_older():
    """At 0.8 rad/s it would follow set-points 19 mm beside them."""
    robot = Robot()
    robot.say(speed=0.8)
    with pytest.raises(ArmError, match=r"robot at arm: a joint moves at 0.80 rad/s; valid at the start is up to 0.05"):
        robot.arm.start()
    assert not robot.arm.state().in_control
    robot.say()
    robot.arm.start()
    assert robot.arm.state().in_control


def test_transforms_that_fall_apart_are_a_fault_and_the_last_state_stays():
    robot = Robot()
    robot.arm.start()
    before = robot.arm.state()
    publish(robot.bus, transform("elsewhere", "shoulder_link"))
    after = robot.arm.state()
    assert after.fault.startswith("robot at arm: no transform from frame 'base_link' to frame 'tool0' came on")
    assert not after.in_control and after.tool_position is before.tool_position


def test_transforms_that_end_are_a_lost_robot(own_servers):
    server = own_servers("ros_server.py", str(own_domain()), TRAJECTORIES, "transforms")
    arm = transform_arm(server.address)
    arm.connect()
    try:
        arm.start()
        assert server.ask("frameless") == "frameless"
        end = time.monotonic() + 3.0
        while not arm.state().fault:
            assert time.monotonic() < end
            time.sleep(0.01)
        said = rf"robot at {server.address}: the transform from frame 'base_link' to frame 'tool0' is 0\.\d s old"
        with pytest.raises(ArmError, match=said):
            arm.start()
        assert not arm.state().in_control
    finally:
        arm.close()


@pytest.fixture
def bus():
    return MemoryBus()


@pytest.fixture
def reader(bus):
    made = TransformReader(bus, "tf", "tf_static")
    made.begin()
    return made


def test_a_frame_is_found_over_several_transforms_and_messages(bus, reader):
    publish(bus, transform("wrist", "tool", (0.1, 0.0, 0.0)), topic="tf_static")
    publish(bus, transform("base", "arm", (1.0, 0.0, 0.0), QUARTER), transform("arm", "wrist", (0.5, 0.0, 0.0)))
    reader.look()
    found = reader.find("base", "tool")
    assert found.position == pytest.approx([1.0, 0.6, 0.0]) and found.rotation == pytest.approx(QUARTER)


def test_two_branches_meet_below_the_root(bus, reader):
    publish(bus, transform("world", "stand", (9.0, 9.0, 9.0)), topic="tf_static")
    publish(bus, transform("stand", "base", (0.0, 0.0, 0.5), QUARTER), transform("stand", "tool", (0.2, 0.0, 0.5)))
    reader.look()
    found = reader.find("base", "tool")
    assert found.position == pytest.approx([0.0, -0.2, 0.0]) and found.rotation == pytest.approx(QUARTER.T)


def test_the_oldest_moving_transform_between_them_tells_the_age(bus, reader):
    now = time.time()
    publish(bus, transform("world", "base", stamp_s=now - 0.09))
    publish(bus, transform("base", "arm", stamp_s=now - 0.05))
    reader.look()
    publish(bus, transform("arm", "tool", stamp_s=now))
    publish(bus, transform("tool", "finger", stamp_s=now - 0.08), topic="tf_static")
    reader.look()
    found = reader.find("base", "finger")
    assert found.frame == "arm" and found.oldest.stamp_ns == pytest.approx((now - 0.05) * 1e9, abs=1e4)


def test_a_stamp_that_comes_again_is_no_new_transform(bus, reader):
    now = time.time()
    publish(bus, transform("base", "tool", stamp_s=now))
    reader.look()
    first = reader.find("base", "tool").oldest
    publish(bus, transform("base", "tool", stamp_s=now))
    reader.look()
    assert reader.find("base", "tool").oldest == first
    publish(bus, transform("base", "tool", stamp_s=now + 0.001))
    reader.look()
    assert reader.find("base", "tool").oldest.steady_ns > first.steady_ns


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([], "no transform from frame 'base' to frame 'tool' came on /tf and /tf_static: no frame came at all"),
        ([("base", "arm")], "'tool' came on .*: frame 'tool' never came; the frames that came are arm, base"),
        ([("arm", "tool")], "frame 'base' never came; the frames that came are arm, tool"),
        ([("map", "base"), ("odom", "tool")], "not connected: one is below 'map', the other below 'odom'"),
        ([("base", f"f{number:02}") for number in range(30)], "are base, f00, .*, f18 and 11 more"),
    ],
)
def test_a_frame_that_is_missing_is_named_with_what_came(bus, reader, seen, said):
    publish(bus, *(transform(*names) for names in seen))
    reader.look()
    with pytest.raises(ArmError, match=said) as caught:
        reader.find("base", "tool")
    assert "\n" not in str(caught.value)


def test_a_tool_that_no_joint_moves_is_refused(bus, reader):
    publish(bus, transform("base", "tool"), topic="tf_static")
    reader.look()
    with pytest.raises(ArmError, match="from frame 'base' to frame 'tool' on /tf and /tf_static is static"):
        reader.find("base", "tool")


def test_a_loop_of_frames_ends_in_a_sentence(bus, reader):
    publish(bus, transform("a", "b"), transform("b", "a"))
    reader.look()
    with pytest.raises(ArmError, match="frame 'tool' never came"):
        reader.find("a", "tool")


def test_a_transform_that_is_no_pose_is_not_taken(bus, reader):
    publish(bus, transform("base", "tool", (0.1, 0.0, 0.0)))
    reader.look()
    bad = transform("base", "tool", (math.nan, 0.0, 0.0))
    publish(bus, bad)
    reader.look()
    assert r"[nan, 0.0, 0.0] m" in reader.problem("base", "tool")
    assert "of frame 'tool'; valid are finite numbers and a quaternion of length 1" in reader.problem("base", "tool")
    assert reader.find("base", "tool").position[0] == 0.1
    zero = transform("base", "tool")
    zero["transform"]["rotation"] = dict.fromkeys("xyzw", 0.0)
    publish(bus, zero)
    reader.look()
    assert "quaternion [0.0, 0.0, 0.0, 0.0]" in reader.problem("base", "tool")
    publish(bus, transform("base", "tool"))
    reader.look()
    assert reader.problem("base", "tool") == ""


def test_a_second_publisher_that_repeats_an_old_transform_does_not_move_the_tool(bus, reader):
    now = time.time()
    publish(bus, transform("base", "tool", (1.0, 0.0, 0.0), stamp_s=now))
    publish(bus, transform("base", "tool", (0.5, 0.0, 0.0), stamp_s=now - 5.0))
    reader.look()
    assert reader.find("base", "tool").position == pytest.approx([1.0, 0.0, 0.0])
