import sys
from pathlib import Path

import pytest

from bid_ros.arms import Arm, Dynamics, build_arm, load_arm_config
from bid_ros.arms.franka_config import FrankaConfig
from bid_ros.arms.robotiq import RobotiqConfig
from bid_ros.arms.ur_config import UrConfig
from bid_ros.errors import ArmError

CONFIG = Path(__file__).resolve().parents[2] / "config"
SHIPPED = CONFIG / "franka_arm.yaml"
SHIPPED_UR = CONFIG / "ur_arm.yaml"


def written(tmp_path, text):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    return path


def test_the_shipped_configuration_is_slow_on_a_robot_and_quicker_in_the_twin():
    robot = load_arm_config(SHIPPED, "172.16.0.2", twin=False)
    twin = load_arm_config(SHIPPED, "127.0.0.1", twin=True)
    assert (robot.address, robot.twin, twin.twin) == ("172.16.0.2", False, True)
    assert robot.dynamics.velocity <= 0.1 < twin.dynamics.velocity


def test_the_twin_section_replaces_fields_only_in_the_twin(tmp_path):
    path = written(
        tmp_path, "max_force: 30.0\ntwin: {max_force: 50.0, dynamics: {velocity: 1, acceleration: 1, jerk: 1}}"
    )
    assert load_arm_config(path, "a", twin=False).max_force == 30.0
    assert load_arm_config(path, "a", twin=True).max_force == 50.0
    assert load_arm_config(path, "a", twin=True).dynamics == Dynamics(1, 1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stifness: 3", "unknown field 'stifness'; valid are joint_prefix"),
        ("address: 1.2.3.4", "unknown field 'address'"),
        ("twin: {stifness: 3}", "unknown field 'stifness'"),
        ("translational_stiffness: 5000", r"translational_stiffness is 5000; valid is 10\.0 to 3000\.0"),
        ("translational_stiffness: stiff", "wrong type"),
        ("dynamics: {velocity: 2.0, acceleration: 0.1, jerk: 0.1}", r"velocity is 2\.0; valid is above 0 and up to 1"),
        ("dynamics: {velocity: 0.1}", "wrong type"),
        ("home: [0, 0, 0]", "valid is 7 finite numbers"),
        ("tool_quaternion: [1, 1, 0, 0]", "valid is a unit quaternion"),
        ("friction_coulomb: [9, 0, 0, 0, 0, 0, 0]", "valid is 0 to 1"),
        ("gripper_thresholds: {close_below: 0.06, open_above: 0.05}", "0 < close_below < open_above"),
        ("payload_mass: .nan", "payload_mass is nan"),
        ("- a list", "valid is a mapping"),
        ("{", "not valid YAML"),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_it(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(ArmError, match=said) as caught:
        load_arm_config(path, "127.0.0.1", twin=True)
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
        ("gripper: {strength: 3}", "wrong type"),
        ("gripper: {force: 3.0}", r"gripper: force is 3\.0; valid is 20\.0 to 235\.0"),
        ("gripper: yes", "gripper is True; valid is a mapping"),
        ("rate_hz: 1000", "rate_hz is 1000; valid are 125, 500 and 0"),
        ("twin: {gain: 5000.0}", r"gain is 5000\.0; valid is 100\.0 to 2000\.0"),
    ],
)
def test_a_bad_ur_file_is_one_sentence_that_names_it(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(ArmError, match=said) as caught:
        load_arm_config(path, "127.0.0.1", twin=True, name="ur")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArmError, match=r"none\.yaml cannot be read"):
        load_arm_config(tmp_path / "none.yaml", "127.0.0.1", twin=True)


def test_arms_are_built_by_name():
    assert isinstance(build_arm("franka", FrankaConfig("127.0.0.1", twin=True)), Arm)
    assert isinstance(build_arm("ur", UrConfig("127.0.0.1")), Arm)
    with pytest.raises(ArmError, match="arm 'kuka' does not exist; valid are franka, ur"):
        build_arm("kuka", FrankaConfig("127.0.0.1"))
    with pytest.raises(ArmError, match="arm 'ur' was given a FrankaConfig; valid is a UrConfig"):
        build_arm("ur", FrankaConfig("127.0.0.1"))
    with pytest.raises(ArmError, match="address is empty"):
        FrankaConfig("")


def test_an_arm_whose_library_is_missing_names_the_package(monkeypatch):
    for module in ("bid_ros.arms.ur", "bid_ros.arms.franka"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ArmError, match="arm 'ur' needs the Python package ur-rtde"):
        build_arm("ur", UrConfig("127.0.0.1"))
    with pytest.raises(ArmError, match="arm 'franka' needs the Python package franky-control"):
        build_arm("franka", FrankaConfig("127.0.0.1"))
