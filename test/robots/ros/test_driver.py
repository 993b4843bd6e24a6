"""What can be wrong with a robot that is driven through ROS: each is one sentence and a controlled stop."""

import time

import numpy as np
import pytest
from memory_bus import MemoryBus, joint_state, message
from real_time import HoldUps, wait_until
from ros_domain import own_domain
from ros_robot import POSITIONS, TRAJECTORIES, forward_arm, ros_arm

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Dynamics
from bid_ros.robots.bus import Heard
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ros.config import RosConfig, RosGripperConfig
from bid_ros.robots.ros.driver import RosArm
from bid_ros.robots.ros.twin.description import NAMES, arm_urdf

ZERO = np.zeros(3)
SPEED = np.array([0.15, 0.0, 0.0])  # m/s


@pytest.fixture(scope="module")
def server(module_servers):
    return module_servers("ros_server.py", str(own_domain()), TRAJECTORIES)


@pytest.fixture
def arm(server):
    assert server.ask(f"switch {TRAJECTORIES}") == "switched"
    made = ros_arm(server.address)
    made.connect()
    yield made
    made.close()


def move(arm, seconds, velocity=SPEED):
    """Stream a motion at constant speed, after a start in which it is reached."""
    begin, state = time.monotonic(), arm.state()
    while (passed := time.monotonic() - begin) < seconds:
        share = min(passed / 0.2, 1.0)
        way = velocity * (passed - 0.1 if passed > 0.2 else passed**2 / 0.4)
        arm.command(Setpoint(state.tool_position + way, state.tool_quaternion, share * velocity, ZERO))
        time.sleep(0.01)


def speed(arm):
    return float(np.abs(arm.state().joint_velocities).max())


def back(arm, joints):
    arm.move_to_joints(joints, Dynamics(1.0, 1.0, 1.0))


def test_joints_that_do_not_follow_are_a_fault(own_servers):
    server = own_servers("ros_server.py", str(own_domain()), TRAJECTORIES)
    arm = ros_arm(server.address, max_lag=0.05)
    arm.connect()
    try:
        assert server.ask("still") == "still"
        arm.start()
        with pytest.raises(ArmError, match=r"rad from where it was sent: look whether its controller is active"):
            move(arm, 3.0)
        assert not arm.state().in_control
        assert server.ask("refused") == "0", "every trajectory was valid"
        arm.recover()
        with pytest.raises(ArmError, match=r"rad from where it was sent: look whether its controller is active"):
            arm.move_to_joints(arm.state().joint_positions + 0.5, Dynamics(1.0, 1.0, 1.0))
    finally:
        arm.close()


def test_a_silence_in_motion_is_a_stop_that_the_robot_makes_by_itself(arm):
    start = arm.state().joint_positions
    arm.start()
    move(arm, 0.4)
    assert speed(arm) > 0.1
    place = arm.state().tool_position
    with HoldUps() as since:
        wait_until(lambda: speed(arm) < 0.001)
        took, way = since.seconds(), float(np.linalg.norm(arm.state().tool_position - place))
    assert took < 0.35 and way < 0.15 * 0.35, f"{took:.3f} s, {1000 * way:.1f} mm"
    assert arm.state().in_control and arm.state().fault == "", "at rest it may wait for set-points"
    back(arm, start)


def test_a_stop_of_positions_is_streamed(server):
    assert server.ask(f"switch {POSITIONS}") == "switched"
    arm = forward_arm(server.address)
    arm.connect()
    try:
        start = arm.state().joint_positions
        arm.start()
        move(arm, 0.4)
        arm.stop()
        assert speed(arm) < 0.02
        back(arm, start)
    finally:
        arm.close()


def test_a_controller_that_is_deactivated_is_a_fault_until_it_is_active_again(server, arm):
    arm.start()
    assert server.ask("switch") == "switched"
    wait_until(lambda: arm.state().fault)
    assert f"controller '{TRAJECTORIES}' is inactive, active are joint_state_broadcaster, gripper" in arm.state().fault
    assert not arm.state().in_control
    assert server.ask(f"switch {TRAJECTORIES}") == "switched"
    with pytest.raises(ArmError, match="recover first"):
        arm.start()
    arm.recover()
    arm.start()
    assert arm.state().fault == "" and arm.state().in_control


def test_it_does_not_connect_to_a_controller_that_is_not_active(server):
    assert server.ask(f"switch {POSITIONS}") == "switched"
    with pytest.raises(ArmError, match=rf"robot at {server.address}: controller '{TRAJECTORIES}' is inactive"):
        ros_arm(server.address, connect_timeout_s=1.0).connect()


def test_a_robot_without_the_topic_is_asked_which_controllers_are_active(server):
    assert server.ask(f"switch {POSITIONS}") == "switched"
    told = {"connect_timeout_s": 1.0, "activity": "silence"}
    with pytest.raises(ArmError, match=rf"robot at {server.address}: controller '{TRAJECTORIES}' is inactive, active"):
        ros_arm(server.address, **told).connect()
    assert server.ask(f"switch {TRAJECTORIES}") == "switched"
    arm = ros_arm(server.address, **told)
    arm.connect()
    try:
        arm.start()
        assert server.ask("switch") == "switched"
        wait_until(lambda: arm.state().fault)
        assert (
            f"controller '{TRAJECTORIES}' is inactive, active are joint_state_broadcaster, gripper" in arm.state().fault
        )
    finally:
        arm.close()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"tool_link": "hand"},
            "the URDF on /at_.*/robot_description has no link 'hand'; valid are base_link, shoulder",
        ),
        ({"joint_names": NAMES[::-1]}, "valid is the order of the URDF from base_link to tool0: shoulder_pan_joint"),
        ({"urdf": "no.urdf"}, r"URDF no\.urdf does not exist; valid is a file or a topic"),
        ({"urdf": "nothing"}, "no URDF came on /at_.*/nothing: check"),
        ({"controller": "velocity"}, "the controller manager has no controller 'velocity'; valid are"),
        (
            {"activity": "silence", "list_controllers": "nobody"},
            "nothing came on /at_.*/silence, and /at_.*/nobody did not answer: one of them tells whether controller",
        ),
        ({"joint_max": (0.0,) * 6}, ""),
    ],
)
def test_a_robot_that_does_not_fit_its_file_is_one_sentence(server, arm, parts, said):
    """``arm`` makes the controller active."""
    built = ros_arm(server.address, **{"connect_timeout_s": 1.0, **parts})
    try:
        if said:
            with pytest.raises(ArmError, match=said) as caught:
                built.connect()
            assert "\n" not in str(caught.value)
        else:
            built.connect()
            with pytest.raises(ArmError, match=r"joint 'shoulder_pan_joint' .* would be at 2\.7.* rad; valid is"):
                built.start()
    finally:
        built.close()


def test_a_joint_that_the_robot_does_not_have_is_named(server, arm):
    built = ros_arm(server.address, joint_names=("shoulder", *NAMES[1:]), connect_timeout_s=1.0)
    with pytest.raises(ArmError, match=r"has no joint 'shoulder'; it names elbow_joint, .*: check the names in robot"):
        built.connect()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (np.array([2.0, 0.0, 0.0]), "has no inverse kinematics solution near the posture of the robot"),
        (np.array([0.25, 0.0, 0.0]), r"a set-point needs .* rad/s of joint"),
    ],
)
def test_a_set_point_that_cannot_be_followed_stops_the_arm(arm, way, said):
    arm.start()
    state = arm.state()
    with pytest.raises(ArmError, match=said):
        arm.command(Setpoint(state.tool_position + way, state.tool_quaternion, ZERO, ZERO))
    assert not arm.state().in_control and arm.state().fault
    arm.recover()
    arm.start()


def test_a_set_point_whose_stop_passes_a_joint_limit_is_refused(server, arm):
    pan = float(arm.state().joint_positions[0])
    narrow = ros_arm(server.address, joint_min=(-6.0,) * 6, joint_max=(pan + 0.01, 6.0, 6.0, 6.0, 6.0, 6.0))
    narrow.connect()
    try:
        narrow.start()
        state = narrow.state()
        across = np.cross([0.0, 0.0, 1.0], state.tool_position)
        with pytest.raises(ArmError, match=r"joint 'shoulder_pan_joint' .* would be at .*; valid is -6\.000 to"):
            narrow.command(Setpoint(state.tool_position, state.tool_quaternion, 0.5 * across, ZERO))
    finally:
        narrow.close()


@pytest.mark.parametrize(
    ("way", "speed", "said"),
    [(0.01, 4.0, r"a set-point needs 4\.00 rad/s of joint 'elbow_joint'"), (0.5, 0.0, "a set-point needs .* rad/s")],
)
def test_a_set_point_of_joints_that_cannot_be_followed_stops_the_arm(arm, way, speed, said):
    arm.start_joints()
    joints, elbow = arm.state().joint_positions, np.arange(6) == 2
    with pytest.raises(ArmError, match=said):
        arm.command_joints(JointSetpoint(joints + way * elbow, speed * elbow))
    assert not arm.state().in_control and arm.state().fault


def test_a_gripper_that_is_not_there_does_not_hinder_the_arm(server, arm):
    bare = ros_arm(server.address, gripper=None)
    bare.connect()
    try:
        assert np.isnan(bare.state().gripper_width) and bare.info.gripper_max == 0.0
        with pytest.raises(ArmError, match="no connected gripper"):
            bare.command_gripper(0.05)
    finally:
        bare.close()


@pytest.mark.parametrize("command", ["pose", "twist"])
def test_a_cartesian_controller_is_not_driven_to_joints(server, arm, command):
    other = ros_arm(server.address, command=command, command_topic="goal")
    other.connect()
    try:
        other.start()
        state = other.state()
        other.command(Setpoint(state.tool_position, state.tool_quaternion, ZERO, ZERO))
        with pytest.raises(
            ArmError, match=f"is driven with a {command}; valid for set-points of the joints is command"
        ):
            other.start_joints()
        with pytest.raises(ArmError, match=f"is driven with a {command}; valid for a joint motion is command: joint_"):
            other.move_to_joints(state.joint_positions)
    finally:
        other.close()


class StandingRobot(MemoryBus):
    """A bus on which somebody publishes new joint states again and again, while it is ``there``."""

    there = True

    def partners(self, name):
        return int(self.there) if name == "joint_states" else super().partners(name)

    def news(self, name):
        if name != "joint_states":
            return super().news(name)
        return [Heard(message(joint_state(time.time(), dict.fromkeys((*NAMES, "grip"), 0.1))), time.time_ns())]


def test_the_last_state_stays_while_a_robot_cannot_be_connected_anew(tmp_path):
    (tmp_path / "arm.urdf").write_text(arm_urdf())
    gripper = RosGripperConfig("grip_command", "grip", open_position=0.0, closed_position=0.8, open_width=0.1)
    config = RosConfig(
        "arm", NAMES, urdf=str(tmp_path / "arm.urdf"), controller="", connect_timeout_s=0.1, gripper=gripper
    )
    bus = StandingRobot()
    arm = RosArm(config, bus)
    with pytest.raises(ArmError, match="is not connected; connect first"):
        arm.state()
    arm.connect()
    before = arm.state()
    del bus.offered["grip_command"]
    bus.there = False
    arm.command_gripper(0.1)
    wait_until(lambda: arm.state().fault)
    with pytest.raises(ArmError, match="nobody publishes /joint_states"):
        arm.recover()
    kept = arm.state()
    assert "nobody publishes" in kept.fault and not kept.in_control
    assert kept.tool_position.tolist() == before.tool_position.tolist()
    bus.there = True
    arm.recover()
    assert arm.state().fault == "" and arm.state().stamp_ns > kept.stamp_ns
    arm.close()
    with pytest.raises(ArmError, match="is not connected; connect first"):
        arm.state()


def test_a_robot_through_ros_needs_a_bus():
    with pytest.raises(ArmError, match="robot 'ros' is driven through ROS; valid is a run with its nodes: bid up"):
        build_arm("ros", RosConfig("arm", NAMES))
