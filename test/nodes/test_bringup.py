"""What a system consists of: nodes, parameters, and the launch file that shares the description with `bid up`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import ipaddress
import socket
from dataclasses import fields

import pytest
import yaml

from bid_ros.bringup import FRANKA_PORTS, UpArguments, command_line, describe, environment, free_twin_address
from bid_ros.errors import BidError
from bid_ros.nodes.base import Parameter

EVERY_NODE = ("arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin")
LAUNCH = ("launch", "franka_place.launch.py")


@pytest.fixture
def bundle(tmp_path):
    return str(tmp_path / "bundle")


def system(**arguments) -> dict:
    return {spec.name: spec for spec in describe("franka_place", UpArguments(**arguments))}


def declared(name: str) -> dict[str, Parameter]:
    module = importlib.import_module(f"bid_ros.nodes.{name}_node")
    return {parameter.name: parameter for parameter in module.PARAMETERS}


def test_without_an_address_the_twin_is_served_on_loopback_only(bundle):
    specs = system(bundle=bundle)
    address = specs["twin"].parameters["address"]
    assert ipaddress.ip_address(address).is_loopback
    assert specs["arm"].parameters["robot_ip"] == address and specs["arm"].parameters["twin"] is True
    assert specs["episode"].parameters["twin"] is True
    assert specs["camera"].parameters["cameras"].endswith("_twin.yaml")
    assert environment(twin=True)["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"


def test_with_an_address_there_is_no_twin_in_any_part(bundle):
    specs = system(robot_ip="172.16.0.2", bundle=bundle)
    assert "twin" not in specs
    assert specs["arm"].parameters["robot_ip"] == "172.16.0.2" and specs["arm"].parameters["twin"] is False
    assert specs["episode"].parameters["twin"] is False
    assert "twin" not in specs["camera"].parameters["cameras"]
    assert "ROS_AUTOMATIC_DISCOVERY_RANGE" not in environment(twin=False)


@pytest.mark.parametrize(("teleop", "acting"), [((), "policy"), (("clean",), "teleop")])
def test_heartbeats_of_everything_in_the_loop_are_required(bundle, teleop, acting):
    specs = system(bundle=bundle, teleop=teleop)
    assert set(specs["safety"].parameters["required"]) == {"camera", acting, "arm"}
    assert set(specs["arm"].parameters["required"]) == {acting, "safety"}
    assert {acting, "camera", "arm", "safety"} <= set(specs)
    assert {"policy", "teleop"} & set(specs) == {acting}


def test_record_and_rviz_decide_which_nodes_there_are(bundle):
    assert "recorder" in system(bundle=bundle) and "monitor" not in system(bundle=bundle)
    specs = system(bundle=bundle, record=False, rviz=True)
    assert "recorder" not in specs and "monitor" in specs


@pytest.mark.parametrize("robot_ip", ["", "172.16.0.2"])
@pytest.mark.parametrize("teleop", [(), ("clean", "diverse")])
def test_every_parameter_is_declared_with_its_type_and_range(bundle, robot_ip, teleop):
    for spec in system(bundle=bundle, robot_ip=robot_ip, teleop=teleop, rviz=True).values():
        assert spec.executable == f"{spec.name}_node"
        known = declared(spec.name)
        assert set(spec.parameters) <= set(known), spec.name
        for name, value in spec.parameters.items():
            parameter = known[name]
            assert type(value) is type(parameter.default), f"{spec.name}: {name} is {value!r}"
            if parameter.minimum is not None:
                assert parameter.minimum <= value <= parameter.maximum


def test_the_parameter_file_names_declared_parameters_and_reaches_the_nodes(root, bundle):
    content = yaml.safe_load((root / "config" / "franka_place_nodes.yaml").read_text())
    specs = system(bundle=bundle)
    for name, section in content.items():
        for parameter, value in section["ros__parameters"].items():
            assert parameter in declared(name), f"{name}: {parameter}"
            assert specs[name].parameters[parameter] == value


@pytest.mark.parametrize("name", EVERY_NODE)
def test_every_parameter_is_described_and_its_default_is_in_its_range(name):
    for parameter in declared(name).values():
        assert len(parameter.description) > 5
        if parameter.minimum is not None:
            assert parameter.minimum <= parameter.default <= parameter.maximum
        elif not isinstance(parameter.default, bool):
            assert not isinstance(parameter.default, int | float), f"{parameter.name} has no range"


def test_an_unknown_system_is_refused():
    with pytest.raises(BidError, match="'pour_tea' does not exist; valid are franka_place"):
        describe("pour_tea", UpArguments())


@pytest.mark.parametrize(
    ("name", "value"),
    [("samples", 0), ("samples", 1000), ("episodes", 0), ("moving", -0.1), ("moving", float("nan")), ("seed", -1)],
)
def test_arguments_outside_their_range_are_refused_by_name(name, value):
    with pytest.raises(BidError, match=f"{name} is {value}; valid is"):
        UpArguments(**{name: value})


def test_twins_side_by_side_get_different_addresses():
    first = free_twin_address()
    with socket.create_server((first, FRANKA_PORTS[0])):
        second = free_twin_address()
    assert second != first and ipaddress.ip_address(second).is_loopback


def test_the_command_line_runs_the_node_with_its_parameter_file(bundle, tmp_path):
    spec = system(bundle=bundle)["safety"]
    line = command_line(spec, tmp_path / "with a space")
    assert "bid_ros.nodes.safety_node" in line and f"'{tmp_path}/with a space/safety.yaml'" in line
    written = yaml.safe_load((tmp_path / "with a space" / "safety.yaml").read_text())
    assert written == {"safety": {"ros__parameters": dict(spec.parameters)}}


def test_the_launch_file_declares_exactly_the_arguments_it_passes_on(root):
    tree = ast.parse(root.joinpath(*LAUNCH).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    (call,) = [node for node in calls if node.func.id == "UpArguments"]
    passed = {keyword.arg for keyword in call.keywords}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (table,) = [node.value for node in assigned if node.targets[0].id == "ARGUMENTS"]
    names = {key.value for key in table.keys}
    assert names == passed
    assert {"robot_ip", "decoder", "samples", "moving", "episodes", "rviz", "record", "out", "bundle"} <= names
    defaults = UpArguments()
    assert names <= {item.name for item in fields(UpArguments)}
    for name, (text, description) in ast.literal_eval(table).items():
        assert text.lower() == str(getattr(defaults, name)).lower(), f"default of {name} differs from bid up"
        assert len(description) > 5


@pytest.mark.skipif(importlib.util.find_spec("launch_ros") is None, reason="ROS's launch is not installed")
def test_the_launch_file_makes_the_described_nodes(root):
    from launch import LaunchContext

    spec = importlib.util.spec_from_file_location("franka_place_launch", root.joinpath(*LAUNCH))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    description = module.generate_launch_description()
    assert {item.name for item in description.get_launch_arguments()} == set(module.ARGUMENTS)
    context = LaunchContext()
    for name, (value, _) in module.ARGUMENTS.items():
        context.launch_configurations[name] = value
    actions = module._nodes(context)
    made = [action for action in actions if hasattr(action, "node_executable")]
    assert {node.node_executable for node in made} == {
        spec.executable for spec in describe("franka_place", UpArguments())
    }
