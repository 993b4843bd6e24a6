import sys
from dataclasses import replace
from pathlib import Path

import pytest
from joint_task import joint_task

from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Arm, Dynamics
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.registry import build_arm, load_arm_config, task_arm
from bid_ros.robots.robotiq.driver import RobotiqConfig
from bid_ros.robots.ur.config import UrConfig

CONFIG = Path(__file__).resolve().parents[2] / "config"
SHIPPED = CONFIG / "franka_place" / "robot.yaml"
SHIPPED_UR = CONFIG / "ur5_pick" / "robot.yaml"


def written(tmp_path, text):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    return path


def test_the_shipped_configuration_is_slow_on_a_robot_and_quicker_in_the_twin():
    robot = load_arm_config(SHIPPED, "172.16.0.2", twin=False, name="franka")
    twin = load_arm_config(SHIPPED, "127.0.0.1", twin=True, name="franka")
    assert (robot.address, robot.twin, twin.twin) == ("172.16.0.2", False, True)
    assert robot.dynamics.velocity <= 0.1 < twin.dynamics.velocity


def test_the_twin_section_replaces_fields_only_in_the_twin(tmp_path):
    path = written(
        tmp_path, "max_force: 30.0\ntwin: {max_force: 50.0, dynamics: {velocity: 1, acceleration: 1, jerk: 1}}"
    )
    assert load_arm_config(path, "a", twin=False, name="franka").max_force == 30.0
    assert load_arm_config(path, "a", twin=True, name="franka").max_force == 50.0
    assert load_arm_config(path, "a", twin=True, name="franka").dynamics == Dynamics(1, 1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("twin: 3", "twin is 3; valid is a mapping"),
        ("twin: {address: 1.2.3.4}", "unknown field 'address'; valid are joint_prefix"),
        ("stifness: 3", "unknown field 'stifness'; valid are joint_prefix"),
        ("address: 1.2.3.4", "unknown field 'address'"),
        ("twin: {stifness: 3}", "unknown field 'stifness'"),
        ("translational_stiffness: 5000", "translational_stiffness is 5000; valid is a number from 10 to 3000"),
        ("translational_stiffness: stiff", "translational_stiffness is 'stiff'; valid is a number"),
        (
            "dynamics: {velocity: 2.0, acceleration: 0.1, jerk: 0.1}",
            r"dynamics\.velocity is 2\.0; valid is a number above 0 and up to 1",
        ),
        ("dynamics: {velocity: 0.1}", "dynamics: the field 'acceleration' is missing"),
        ("home: [0, 0, 0]", "valid is a list of 7 numbers"),
        ("tool_quaternion: [1, 1, 0, 0]", "valid is a unit quaternion"),
        ("friction_coulomb: [9, 0, 0, 0, 0, 0, 0]", r"friction_coulomb\[0\] is 9; valid is a number from 0 to 1"),
        ("gripper_thresholds: {close_below: 0.06, open_above: 0.05}", "close_below < open_above"),
        ("payload_mass: .nan", "payload_mass is nan"),
        ("tool_offset: [0, 0, 170]", r"tool_offset\[2\] is 170; valid is a number from -1 to 1"),
        ("payload_center: [0, 0, 60]", r"payload_center\[2\] is 60; valid is a number from -1 to 1"),
        ("home: [0, -45, 0, -135, 0, 90, 45]", r"home\[1\] is -45; valid is a number from -6\.3 to 6\.3"),
        (
            "payload_inertia: [900, 0, 0, 0, 900, 0, 0, 0, 900]",
            r"payload_inertia\[0\] is 900; valid is a number from -1",
        ),
        (
            "gripper_open_width: 0.05",
            r"open_above is 0\.06 m, and the gripper opens to 0\.05 m; valid is up to that",
        ),
        ("- a list", "valid is a mapping"),
        ("{", "not valid YAML"),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_it(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(ArmError, match=said) as caught:
        load_arm_config(path, "127.0.0.1", twin=True, name="franka")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shipped_ur_is_slow_on_a_robot_and_follows_closer_in_the_twin():
    robot = load_arm_config(SHIPPED_UR, "192.168.0.2", twin=False, name="ur")
    twin = load_arm_config(SHIPPED_UR, "127.0.0.1", twin=True, name="ur")
    assert isinstance(robot, UrConfig)
    assert robot.dynamics.velocity <= 0.1 < twin.dynamics.velocity
    assert twin.lookahead_time_s < robot.lookahead_time_s
    assert (robot.gripper.speed, robot.gripper.closed_register) == (0.15, 230)


def test_a_ur_may_have_no_gripper_or_one_at_another_address(tmp_path):
    none = load_arm_config(written(tmp_path, "gripper: null"), "a", twin=True, name="ur")
    assert none.gripper is None
    other = load_arm_config(written(tmp_path, "gripper: {address: b, force: 100.0}"), "a", twin=True, name="ur")
    assert other.gripper == RobotiqConfig(address="b", force=100.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stiffness: 3", "unknown field 'stiffness'; valid are model"),
        ("gripper: {strength: 3}", "gripper: unknown field 'strength'; valid are address"),
        ("gripper: {force: 3.0}", r"gripper\.force is 3\.0; valid is a number from 20 to 235"),
        ("gripper: yes", "gripper is True; valid is a mapping"),
        ("rate_hz: 1000", "rate_hz is 1000; valid is one of 0, 125, 500"),
        ("tool_offset: [0, 0, 170]", r"tool_offset\[2\] is 170; valid is a number from -1 to 1"),
        ("payload_center: [0, 0, 58]", r"payload_center\[2\] is 58; valid is a number from -1 to 1"),
        ("gripper: {open_width: 0.05}", r"open_above is 0\.06 m, and the gripper opens to 0\.05 m"),
        ("twin: {gain: 5000.0}", r"gain is 5000\.0; valid is a number from 100 to 2000"),
    ],
)
def test_a_bad_ur_file_is_one_sentence_that_names_it(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(ArmError, match=said) as caught:
        load_arm_config(path, "127.0.0.1", twin=True, name="ur")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArmError, match=r"none\.yaml does not exist"):
        load_arm_config(tmp_path / "none.yaml", "127.0.0.1", twin=True, name="franka")


def test_arms_are_built_by_name():
    assert isinstance(build_arm("franka", FrankaConfig("127.0.0.1", twin=True)), Arm)
    assert isinstance(build_arm("ur", UrConfig("127.0.0.1")), Arm)
    with pytest.raises(ArmError, match="robot 'kuka' does not exist; valid are franka, ros, ur"):
        build_arm("kuka", FrankaConfig("127.0.0.1"))
    with pytest.raises(ArmError, match="robot 'ur' was given a FrankaConfig; valid is a UrConfig"):
        build_arm("ur", FrankaConfig("127.0.0.1"))
    with pytest.raises(ArmError, match="address is empty"):
        FrankaConfig("")


def test_an_arm_whose_library_is_missing_names_the_package(monkeypatch):
    for module in ("bid_ros.robots.ur.driver", "bid_ros.robots.franka.driver"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ArmError, match="robot 'ur' needs the Python package ur-rtde"):
        build_arm("ur", UrConfig("127.0.0.1"))
    with pytest.raises(ArmError, match="robot 'franka' needs the Python package franky-control"):
        build_arm("franka", FrankaConfig("127.0.0.1"))


def test_kinematics_that_need_no_address_name_none(tmp_path):
    file = tmp_path / "robot.yaml"
    given = (CONFIG / "new" / "ros" / "robot.yaml").read_text()
    file.write_text(given.replace("urdf: robot_description ", "urdf: missing.urdf "))
    with pytest.raises(ArmError, match=r"robot at any address: URDF missing\.urdf does not exist"):
        task_arm(replace(joint_task("ur"), robot="ros"), file)
