"""What a system consists of: nodes, parameters, and the launch file that shares the description with `bid up`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import ipaddress
import socket
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from bid_ros import bringup
from bid_ros.arms import load_arm_config
from bid_ros.arms.robotiq import PORT as GRIPPER_PORT
from bid_ros.bringup import (
    FRANKA_PORTS,
    SYSTEMS,
    UR_PORTS,
    UpArguments,
    command_line,
    describe,
    environment,
    free_twin_address,
    rviz_layout,
)
from bid_ros.errors import BidError
from bid_ros.evaluation.trial import build_trial
from bid_ros.nodes.base import Parameter
from bid_ros.recording.topics import TOPICS, camera_topic
from bid_ros.rtde import PORT as RTDE_PORT
from bid_ros.sim.ur.dashboard import DASHBOARD_PORT
from bid_ros.sim.ur.script_port import SCRIPT_PORTS
from bid_ros.task import load_task

EVERY_NODE = ("arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin")


@pytest.fixture
def bundle(tmp_path):
    return str(tmp_path / "bundle")


@pytest.fixture(params=sorted(SYSTEMS))
def name(request) -> str:
    return request.param


@pytest.fixture
def system(name):
    """The nodes of a system by their name."""
    return lambda **arguments: {spec.name: spec for spec in describe(name, UpArguments(**arguments))}


def declared(name: str) -> dict[str, Parameter]:
    module = importlib.import_module(f"bid_ros.nodes.{name}_node")
    return {parameter.name: parameter for parameter in module.PARAMETERS}


def test_without_an_address_the_twin_is_served_on_loopback_only(system, bundle):
    specs = system(bundle=bundle)
    address = specs["twin"].parameters["address"]
    assert ipaddress.ip_address(address).is_loopback
    assert specs["arm"].parameters["robot_ip"] == address and specs["arm"].parameters["twin"] is True
    assert specs["episode"].parameters["twin"] is True
    assert specs["camera"].parameters["cameras"].endswith("_twin.yaml")
    assert environment(twin=True)["FASTRTPS_DEFAULT_PROFILES_FILE"].endswith("fastdds_twin.xml")


def test_with_an_address_there_is_no_twin_in_any_part(system, bundle):
    specs = system(robot_ip="172.16.0.2", bundle=bundle)
    assert "twin" not in specs
    assert specs["arm"].parameters["robot_ip"] == "172.16.0.2" and specs["arm"].parameters["twin"] is False
    assert specs["episode"].parameters["twin"] is False
    assert "twin" not in specs["camera"].parameters["cameras"]
    assert environment(twin=False)["FASTRTPS_DEFAULT_PROFILES_FILE"].endswith("fastdds_robot.xml")


@pytest.mark.parametrize(("teleop", "acting"), [((), "policy"), (("clean",), "teleop")])
def test_heartbeats_of_everything_in_the_loop_are_required(system, bundle, teleop, acting):
    specs = system(bundle=bundle, teleop=teleop)
    assert set(specs["safety"].parameters["required"]) == {"camera", acting, "arm"}
    assert set(specs["arm"].parameters["required"]) == {acting, "safety"}
    assert {acting, "camera", "arm", "safety"} <= set(specs)
    assert {"policy", "teleop"} & set(specs) == {acting}


def test_record_and_rviz_decide_which_nodes_there_are(system, bundle):
    assert "recorder" in system(bundle=bundle) and "monitor" not in system(bundle=bundle)
    specs = system(bundle=bundle, record=False, rviz=True)
    assert "recorder" not in specs and "monitor" in specs


@pytest.mark.parametrize("robot_ip", ["", "172.16.0.2"])
@pytest.mark.parametrize("teleop", [(), ("clean", "diverse")])
def test_every_parameter_is_declared_with_its_type_and_range(system, bundle, robot_ip, teleop):
    for spec in system(bundle=bundle, robot_ip=robot_ip, teleop=teleop, rviz=True).values():
        assert spec.executable == f"{spec.name}_node"
        known = declared(spec.name)
        assert set(spec.parameters) <= set(known), spec.name
        for name, value in spec.parameters.items():
            parameter = known[name]
            assert type(value) is type(parameter.default), f"{spec.name}: {name} is {value!r}"
            if parameter.minimum is not None:
                assert parameter.minimum <= value <= parameter.maximum


def test_the_parameter_file_names_declared_parameters_and_reaches_the_nodes(root, name, system, bundle):
    content = yaml.safe_load((root / "config" / f"{name}_nodes.yaml").read_text())
    specs = system(bundle=bundle)
    for node, section in content.items():
        for parameter, value in section["ros__parameters"].items():
            assert parameter in declared(node), f"{node}: {parameter}"
            assert specs[node].parameters[parameter] == value


def test_rviz_shows_only_what_the_system_publishes(root, name):
    task = load_task(root / "config" / f"{name}.yaml")
    displays = yaml.safe_load(rviz_layout(name).read_text())["Visualization Manager"]["Displays"]
    shown = {key["Value"] for item in displays for title, key in item.items() if title.endswith("Topic")}
    cameras = {camera_topic(camera.name) for camera in task.cameras}
    ours = {"/monitor/markers", "/monitor/overlay", *TOPICS, *cameras}
    assert {"/monitor/markers", "/monitor/overlay"} < shown <= {*ours, "/robot_description"}


def test_everything_a_system_names_is_its_own_and_there(name, system, bundle):
    for robot_ip in ("", "172.16.0.2"):
        specs = system(bundle=bundle, robot_ip=robot_ip, rviz=True)
        tasks = {spec.parameters["task"] for spec in specs.values()}
        assert {load_task(task).name for task in tasks} == {name}
        files = [specs[node].parameters["cameras"] for node in ("camera", "monitor")]
        files += [specs["arm"].parameters["arm_config"], str(rviz_layout(name))]
        assert all(Path(file).is_file() for file in files)
        config = load_arm_config(files[2], "127.0.0.1", twin=not robot_ip, name=specs["arm"].parameters["arm"])
        assert config.twin == (not robot_ip)


def test_the_gripper_of_an_arm_opens_and_closes_where_its_task_s_episodes_need_it(name, system, bundle):
    setup, task = build_trial(name).setup, load_task(system(bundle=bundle)["arm"].parameters["task"])
    arm = system(bundle=bundle)["arm"].parameters
    thresholds = load_arm_config(arm["arm_config"], "127.0.0.1", twin=True, name=arm["arm"]).gripper_thresholds
    assert thresholds.open_above < setup.opened < setup.open_width == task.limits.gripper_max
    assert thresholds.close_below > task.limits.gripper_min


def test_a_system_without_a_shipped_policy_says_how_to_get_one():
    with pytest.raises(BidError, match=r"no policy is shipped for the system 'missing': name one with bundle"):
        bringup._shipped_bundle("missing")


@pytest.mark.parametrize("node", EVERY_NODE)
def test_every_parameter_is_described_and_its_default_is_in_its_range(node):
    for parameter in declared(node).values():
        assert len(parameter.description) > 5
        if parameter.minimum is not None:
            assert parameter.minimum <= parameter.default <= parameter.maximum
        elif not isinstance(parameter.default, bool):
            assert not isinstance(parameter.default, int | float), f"{parameter.name} has no range"


def test_an_unknown_system_is_refused():
    with pytest.raises(BidError, match="'pour_tea' does not exist; valid are franka_place, ur5_pick"):
        describe("pour_tea", UpArguments())


@pytest.mark.parametrize(
    ("argument", "value"),
    [("samples", 0), ("samples", 1000), ("episodes", 0), ("moving", -0.1), ("moving", float("nan")), ("seed", -1)],
)
def test_arguments_outside_their_range_are_refused_by_name(argument, value):
    with pytest.raises(BidError, match=f"{argument} is {value}; valid is"):
        UpArguments(**{argument: value})


@pytest.mark.parametrize("ports", [FRANKA_PORTS, UR_PORTS])
@pytest.mark.parametrize("taken", [0, -1])
def test_twins_side_by_side_get_different_addresses(ports, taken):
    first = free_twin_address(ports)
    with socket.create_server((first, ports[taken])):
        second = free_twin_address(ports)
    assert second != first and ipaddress.ip_address(second).is_loopback


def test_the_ports_of_a_ur_are_those_that_its_twin_serves():
    assert set(UR_PORTS) == {RTDE_PORT, DASHBOARD_PORT, GRIPPER_PORT, *SCRIPT_PORTS}


def test_the_command_line_runs_the_node_with_its_parameter_file(system, bundle, tmp_path):
    spec = system(bundle=bundle)["safety"]
    line = command_line(spec, tmp_path / "with a space")
    assert "bid_ros.nodes.safety_node" in line and f"'{tmp_path}/with a space/safety.yaml'" in line
    written = yaml.safe_load((tmp_path / "with a space" / "safety.yaml").read_text())
    assert written == {"safety": {"ros__parameters": dict(spec.parameters)}}


def test_the_cup_moves_as_fast_as_the_shipped_policy_was_evaluated_at_unless_told_otherwise(system, name, bundle):
    assert system(bundle=bundle)["episode"].parameters["moving"] == {"franka_place": 0.03, "ur5_pick": 0.01}[name]
    for speed in (0.0, 0.05):
        assert system(bundle=bundle, moving=speed)["episode"].parameters["moving"] == speed


def test_every_system_has_a_launch_file_of_its_own(root, name):
    tree = ast.parse((root / "launch" / f"{name}.launch.py").read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert function.name == "generate_launch_description"
    (call,) = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    assert call.func.id == "launch_description" and [argument.value for argument in call.args] == [name]
    assert {file.name.split(".")[0] for file in (root / "launch").glob("*.launch.py")} == set(SYSTEMS)


def test_launching_declares_exactly_the_arguments_it_passes_on(root):
    tree = ast.parse((root / "bid_ros" / "nodes" / "launching.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    (call,) = [node for node in calls if node.func.id == "UpArguments"]
    passed = {keyword.arg for keyword in call.keywords}
    assigned = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    (table,) = [node.value for node in assigned if node.target.id == "ARGUMENTS"]
    names = {key.value for key in table.keys}
    assert names == passed
    assert {"robot_ip", "decoder", "samples", "moving", "episodes", "rviz", "record", "out", "bundle"} <= names
    defaults = UpArguments()
    assert names <= {item.name for item in fields(UpArguments)}
    for argument, (text, description) in ast.literal_eval(table).items():
        default = getattr(defaults, argument)
        assert text.lower() == ("" if default is None else str(default).lower()), (
            f"default of {argument} differs from bid up"
        )
        assert len(description) > 5


@pytest.fixture
def launched(root, name, bundle):
    """Start a launch file's actions with these arguments, without running them."""
    if importlib.util.find_spec("launch_ros") is None:
        pytest.skip("ROS's launch is not installed")
    from launch import LaunchContext

    spec = importlib.util.spec_from_file_location(f"{name}_launch", root / "launch" / f"{name}.launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def start(**arguments):
        context = LaunchContext()
        *declared_first, start_nodes = module.generate_launch_description().entities
        for argument in declared_first:
            argument.execute(context)
        context.launch_configurations.update({"bundle": bundle, **arguments})
        return start_nodes.execute(context)

    return start


def test_the_launch_file_makes_the_described_nodes(launched, system, bundle):
    made = [action for action in launched(rviz="true") if hasattr(action, "node_executable")]
    wanted = {spec.executable for spec in system(bundle=bundle, rviz=True).values()}
    assert {node.node_executable for node in made} == {*wanted, "rviz2"}


@pytest.mark.parametrize(
    ("argument", "text", "word"),
    [("samples", "many", "a whole number"), ("moving", "fast", "a number"), ("rviz", "1", "true and false")],
)
def test_the_launch_file_refuses_what_is_no_value(launched, argument, text, word):
    with pytest.raises(BidError, match=f"{argument} is '{text}'; valid (is|are) {word}"):
        launched(**{argument: text})
