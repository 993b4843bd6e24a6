"""What a system consists of: nodes, parameters, and the launch file that shares the description with `bid up`."""

from __future__ import annotations

import ast
import atexit
import importlib
import importlib.util
import ipaddress
import json
import os
import re
import shutil
import socket
from pathlib import Path

import pytest
import yaml
from ros_domain import own_domain
from tiny_bundle import make_tiny_bundle

from bid_ros.cli import build_parser
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.core.topics import MARKERS, OVERLAY
from bid_ros.nodes.parameters import Parameter
from bid_ros.robots.franka import ROBOT as FRANKA
from bid_ros.robots.registry import load_arm_config
from bid_ros.robots.robotiq.registers import PORT as GRIPPER_PORT
from bid_ros.robots.ur import ROBOT as UR
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT
from bid_ros.robots.ur.twin.dashboard import DASHBOARD_PORT
from bid_ros.robots.ur.twin.script_port import SCRIPT_PORT
from bid_ros.system.description import (
    command_line,
    describe,
    environment,
    twin_address,
)
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.system.new import new_system
from bid_ros.system.run import RunArguments, argument_fields, parse_arguments
from bid_ros.system.rviz import rviz_arguments, rviz_command
from bid_ros.tasks.registry import find_demonstrator, setup_of
from bid_ros.tasks.topics import system_topics

EVERY_NODE = ("arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin")


@pytest.fixture(autouse=True)
def nobody_else_s_domain(monkeypatch):
    """In domain 0 a system of somebody may run, and have the address of a twin."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(own_domain()))


@pytest.fixture
def bundle(tmp_path):
    return str(tmp_path / "bundle")


@pytest.fixture(params=shipped_systems())
def name(request) -> str:
    return request.param


@pytest.fixture
def system(name):
    """The nodes of a system by their name."""
    return lambda **arguments: {spec.name: spec for spec in describe(find_system(name), RunArguments(**arguments))}


def declared(name: str) -> dict[str, Parameter]:
    module = importlib.import_module(f"bid_ros.nodes.{name}_node")
    return {parameter.name: parameter for parameter in module.PARAMETERS}


def test_without_an_address_the_twin_is_served_on_loopback_only(system, bundle):
    specs = system(bundle=bundle)
    address = specs["twin"].parameters["address"]
    assert ipaddress.ip_address(address).is_loopback
    assert specs["arm"].parameters["robot_ip"] == address and specs["arm"].parameters["twin"] is True
    assert specs["episode"].parameters["twin"] is True
    assert specs["camera"].parameters["twin"] is True
    assert environment()["FASTRTPS_DEFAULT_PROFILES_FILE"].endswith("fastdds_local.xml")


def test_with_an_address_there_is_no_twin_in_any_part(system, bundle):
    specs = system(robot_ip="172.16.0.2", bundle=bundle, unstaged=True)
    assert "twin" not in specs
    assert specs["arm"].parameters["robot_ip"] == "172.16.0.2" and specs["arm"].parameters["twin"] is False
    assert specs["episode"].parameters["twin"] is False
    assert specs["camera"].parameters["twin"] is False


@pytest.mark.parametrize(("driver", "acting"), [(None, "policy"), ("scripted", "teleop"), ("exercise", "teleop")])
def test_heartbeats_of_everything_in_the_loop_are_required(system, bundle, driver, acting):
    specs = system(bundle=bundle, driver=driver)
    assert set(specs["safety"].parameters["required"]) == {"camera", acting, "arm"}
    assert set(specs["arm"].parameters["required"]) == {acting, "safety"}
    assert {acting, "camera", "arm", "safety"} <= set(specs)
    assert {"policy", "teleop"} & set(specs) == {acting}


def test_a_slow_run_slows_the_policy_and_homing_and_gives_them_time(system, bundle):
    usual, slow = system(bundle=bundle), system(bundle=bundle, slow=0.2)
    assert usual["safety"].parameters["slow"] == usual["episode"].parameters["slow"] == 1.0
    assert slow["safety"].parameters["slow"] == slow["episode"].parameters["slow"] == 0.2
    assert slow["episode"].parameters["timeout_s"] == 5 * usual["episode"].parameters["timeout_s"]
    with pytest.raises(BidError, match=r"slow is 0\.2, but the driver is scripted; valid with driver: policy"):
        system(driver="scripted", slow=0.2)
    with pytest.raises(BidError, match=r"slow is 0\.01; valid is 0\.05 to 1"):
        RunArguments(slow=0.01)


def test_faster_decisions_have_faster_images_and_are_recorded(system, bundle):
    plain, nodes = system(bundle=bundle), system(bundle=bundle, decision_rate=30.0)
    assert {nodes[name].parameters["decision_rate_hz"] for name in ("policy", "episode")} == {30.0}
    assert nodes["twin"].parameters["scene_rate_hz"] == 30 and nodes["camera"].parameters["pair_rate_hz"] == 30.0
    assert json.loads(nodes["recorder"].parameters["setup"])["policy"]["decision_rate_hz"] == 30.0
    assert plain["twin"].parameters["scene_rate_hz"] == 10 and "pair_rate_hz" not in plain["camera"].parameters


def test_a_twin_that_cannot_have_a_scene_for_each_decision_is_refused(tmp_path):
    made = new_system(tmp_path / "mine", like="franka_place")
    for path in (made.folder / "task.yaml", made.folder / "policy_task.yaml"):
        path.write_text(re.sub(r"(?m)^rate_hz: 10\b", "rate_hz: 12.5", path.read_text()))
    system = find_system(made.folder)
    with pytest.raises(BidError, match=r"decision_rate_hz is 37\.5, and the twin has a whole number of scenes"):
        describe(system, RunArguments(driver="policy", decision_rate=37.5))
    twin, *_ = describe(system, RunArguments(driver="policy", decision_rate=25.0))
    assert twin.parameters["scene_rate_hz"] == 25


def test_a_person_may_drive_from_where_the_arm_is_and_nobody_else(system, bundle):
    specs = system(driver="page", prepare=False)
    assert not specs["episode"].parameters["prepares"] and not specs["teleop"].parameters["prepared"]
    specs = system(driver="page")
    assert specs["episode"].parameters["prepares"] and specs["teleop"].parameters["prepared"]
    for given in ({"bundle": bundle}, {"driver": "exercise"}, {"driver": "page", "human": True}):
        with pytest.raises(BidError, match="prepare is false, but a person records or the driver is"):
            system(prepare=False, **given)


def test_in_shadow_mode_safety_forwards_nothing_of_the_policy_and_nothing_is_prepared(system, bundle):
    specs = system(bundle=bundle, shadow=True)
    assert specs["safety"].parameters["shadow"] and specs["episode"].parameters["shadow"]
    assert not specs["episode"].parameters["prepares"] and "teleop" not in specs
    specs = system(bundle=bundle, shadow=True, takeover="gamepad")
    assert specs["safety"].parameters["shadow"] and specs["teleop"].parameters["takeover"]
    plain = system(bundle=bundle)
    assert not plain["safety"].parameters["shadow"] and plain["episode"].parameters["prepares"]
    for given in ({"driver": "exercise"}, {"human": True}):
        with pytest.raises(BidError, match="shadow is true, but a person records or the driver is"):
            system(bundle=bundle, shadow=True, **given)


def test_record_and_rviz_decide_which_nodes_there_are(system, bundle):
    assert "recorder" in system(bundle=bundle) and "monitor" not in system(bundle=bundle)
    specs = system(bundle=bundle, record=False, rviz=True)
    assert "recorder" not in specs and "monitor" in specs


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"robot_ip": "172.16.0.2", "unstaged": True},
        {"driver": "scripted", "styles": ("clean", "diverse")},
        {"driver": "exercise"},
    ],
)
def test_every_parameter_is_declared_with_its_type_and_range(system, bundle, arguments):
    for spec in system(bundle=bundle, rviz=True, **arguments).values():
        assert spec.executable == f"{spec.name}_node"
        known = declared(spec.name)
        assert set(spec.parameters) <= set(known), spec.name
        for name, value in spec.parameters.items():
            parameter = known[name]
            assert type(value) is type(parameter.default), f"{spec.name}: {name} is {value!r}"
            if parameter.minimum is not None:
                assert parameter.minimum <= value <= parameter.maximum


def test_the_parameter_file_names_declared_parameters_and_reaches_the_nodes(root, name, system, bundle):
    content = yaml.safe_load((root / "config" / name / "nodes.yaml").read_text())
    specs = system(bundle=bundle)
    for node, section in content.items():
        for parameter, value in section["ros__parameters"].items():
            assert parameter in declared(node), f"{node}: {parameter}"
            assert specs[node].parameters[parameter] == value


def test_rviz_shows_only_what_the_system_publishes(root, name):
    task = load_task(root / "config" / name / "task.yaml")
    displays = yaml.safe_load(find_system(name).file("view.rviz").read_text())["Visualization Manager"]["Displays"]
    shown = {key["Value"] for item in displays for title, key in item.items() if title.endswith("Topic")}
    assert {MARKERS, OVERLAY} < shown <= {MARKERS, OVERLAY, *system_topics(task), "robot_description"}


def test_everything_a_system_names_is_its_own_and_there(name, system, bundle):
    for robot_ip in ("", "172.16.0.2"):
        specs = system(bundle=bundle, robot_ip=robot_ip, rviz=True, unstaged=True)
        tasks = {spec.parameters["task"] for spec in specs.values()}
        assert {load_task(task).name for task in tasks} == {name}
        files = [specs[node].parameters["cameras"] for node in ("camera", "monitor")]
        files += [specs["arm"].parameters["arm_config"], str(find_system(name).file("view.rviz"))]
        assert all(Path(file).is_file() for file in files)
        config = load_arm_config(files[2], "127.0.0.1", twin=not robot_ip, name=specs["arm"].parameters["arm"])
        assert config.twin == (not robot_ip)


def test_the_gripper_of_an_arm_opens_and_closes_where_its_task_s_episodes_need_it(name, system, bundle):
    task = find_system(name).task
    setup = setup_of(task)
    arm = system(bundle=bundle)["arm"].parameters
    thresholds = load_arm_config(arm["arm_config"], "127.0.0.1", twin=True, name=arm["arm"]).gripper_thresholds
    assert thresholds.open_above < setup.opened < setup.open_width == task.limits.gripper_max
    assert thresholds.close_below > task.limits.gripper_min


def test_a_system_without_a_policy_says_how_to_get_one(tmp_path, name):
    folder = tmp_path / "mine"
    shutil.copytree(find_system(name).folder, folder)
    (folder / "system.yaml").write_text("policy: {}\n")
    with pytest.raises(BidError, match=r"mine has no policy: train one .* or let a teleoperation device act"):
        describe(find_system(folder), RunArguments())
    assert describe(find_system(folder), RunArguments(driver="exercise"))


def test_a_robot_may_be_switched_on_late_and_nobody_gives_up_before(system, bundle):
    for address, least_s, more_s in (("", 30.0, 0.0), ("172.16.0.2", 300.0, 300.0)):
        found = system(bundle=bundle, robot_ip=address, unstaged=bool(address))
        assert found["arm"].parameters["connect_wait_s"] == least_s
        assert found["episode"].parameters["robot_wait_s"] == more_s


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"driver": "mindreader"}, "teleoperation device 'mindreader' does not exist; valid are exercise, gamepad"),
        ({"driver": "scripted", "styles": ("wild",)}, "style is 'wild'; valid for .* are clean, diverse"),
        ({"driver": "scripted", "robot_ip": "172.16.0.2"}, "device 'scripted' works in the twin only"),
        ({"device_settings": "deadzone: 0.1"}, "device_settings are .* but the driver is policy"),
        (
            {"driver": "joy", "device_settings": "topic: 'a b'"},
            "device 'joy' listens to the topic 'a b'; valid is a ROS",
        ),
        ({"driver": "leader", "device_settings": "signs: [1]"}, "leader's signs are 1 values; valid are [67]"),
        ({"driver": "joy", "device_settings": "speed: 1"}, "settings of device 'joy': unknown field 'speed'"),
        ({"driver": "scripted", "device_settings": "speed: 1"}, "device 'scripted' has no settings"),
        ({"styles": ("clean",)}, "styles are clean, but the driver is policy"),
        ({"decision_rate": 25.0}, "decision_rate_hz is 25; valid are multiples of the rate of task .* 10, 20, 30"),
    ],
)
def test_who_cannot_act_is_refused(system, bundle, arguments, sentence):
    with pytest.raises(BidError, match=sentence):
        system(bundle=bundle, **arguments)


def test_a_script_that_is_told_no_style_demonstrates_all_of_the_task_s_in_turn(name, system, bundle):
    styles = list(find_demonstrator(find_system(name).task).styles)
    assert system(bundle=bundle, driver="scripted")["episode"].parameters["labels"] == styles
    given = system(bundle=bundle, driver="scripted", styles=("diverse",))["episode"].parameters["labels"]
    assert given == ["diverse"] and styles != given


@pytest.mark.parametrize("node", EVERY_NODE)
def test_every_parameter_is_described_and_its_default_is_in_its_range(node):
    for parameter in declared(node).values():
        assert len(parameter.description) > 5
        if parameter.minimum is not None:
            assert parameter.minimum <= parameter.default <= parameter.maximum
        elif not isinstance(parameter.default, bool):
            assert not isinstance(parameter.default, int | float), f"{parameter.name} has no range"


def test_an_unknown_system_is_refused():
    with pytest.raises(BidError, match=r"'pour_tea' does not exist; valid are .* the shipped franka_place, ur5_pick"):
        find_system("pour_tea")


@pytest.mark.parametrize(
    ("argument", "value"),
    [("samples", 0), ("samples", 1000), ("episodes", 0), ("moving", -0.1), ("moving", float("nan")), ("seed", -1)],
)
def test_arguments_outside_their_range_are_refused_by_name(argument, value):
    with pytest.raises(BidError, match=f"{argument} is {value}; valid is"):
        RunArguments(**{argument: value})


def test_every_domain_and_namespace_has_a_twin_address_of_its_own(monkeypatch):
    addresses = set()
    for domain in ("0", "1", "232"):
        monkeypatch.setenv("ROS_DOMAIN_ID", domain)
        addresses |= {twin_address(namespace, ()) for namespace in ("", "/left", "/right", "/cell/left")}
        assert twin_address("left", ()) == twin_address("/left", ()) and twin_address("/", ()) == twin_address("", ())
    assert len(addresses) == 12 and all(ipaddress.ip_address(address).is_loopback for address in addresses)


@pytest.mark.parametrize("ports", [FRANKA.ports, UR.ports])
@pytest.mark.parametrize("taken", [0, -1])
def test_a_system_that_runs_already_is_not_started_twice(ports, taken):
    sentence = rf"port {ports[taken]} cannot serve .* namespace '/left' .*: end the system that runs there"
    with socket.create_server((twin_address("/left", ports), ports[taken])):
        with pytest.raises(BidError, match=sentence):
            twin_address("/left", ports)
        assert twin_address("/right", ports)


@pytest.mark.parametrize("text", ["233", "-1", "one"])
def test_a_domain_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv("ROS_DOMAIN_ID", text)
    with pytest.raises(BidError, match=f"ROS_DOMAIN_ID is '{text}'; valid is 0 to 232"):
        twin_address("", ())


@pytest.mark.parametrize("namespace", ["le ft", "/2left", "//a", "/left/", "left//arm", "/l\u00e4ft", "~", "x" * 101])
def test_a_namespace_that_ros_would_not_take_is_refused(namespace):
    with pytest.raises(BidError, match=r"namespace is .*; valid are up to 100 letters, digits and _"):
        RunArguments(namespace=namespace)


def test_a_log_level_that_does_not_exist_is_refused():
    with pytest.raises(BidError, match="log_level is 'loud'; valid are debug, info, warn, error, fatal"):
        RunArguments(log_level="loud")


def test_the_nodes_of_a_system_live_in_its_namespace(system, bundle, tmp_path):
    specs = system(bundle=bundle, namespace="cell_1/left", log_level="debug", rviz=True)
    assert {spec.namespace for spec in specs.values()} == {"/cell_1/left"}
    assert specs["twin"].parameters["address"] != system(bundle=bundle)["twin"].parameters["address"]
    line = command_line(specs["safety"], tmp_path)
    assert "-r __ns:=/cell_1/left" in line and line.endswith("--log-level debug")
    written = yaml.safe_load((tmp_path / "safety.yaml").read_text())
    assert written == {"/cell_1/left/safety": {"ros__parameters": dict(specs["safety"].parameters)}}


def test_rviz_shows_the_system_of_the_namespace(name):
    system = find_system(name)
    assert rviz_arguments(system, RunArguments()) == ["-d", str(system.file("view.rviz"))]
    frame = ["-f", "left/base"]
    assert rviz_arguments(system, RunArguments(namespace="left"))[2:] == [*frame, "--ros-args", "-r", "__ns:=/left"]


def test_a_parameter_file_lies_over_the_one_of_the_system(system, bundle, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("/left/camera: {ros__parameters: {tolerance_s: 0.05}}\nsafety: {ros__parameters: {late_limit: 7}}")
    specs = system(bundle=bundle, parameters=str(file), namespace="/left")
    assert specs["camera"].parameters["tolerance_s"] == 0.05 and specs["safety"].parameters["late_limit"] == 7
    assert specs["arm"].parameters == system(bundle=bundle, namespace="/left")["arm"].parameters


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "does not exist"),
        ("{", "is not valid YAML"),
        ("camera: 3", "camera is 3; valid is a mapping of fields"),
        ("camera: {}\n- 1", "is not valid YAML"),
        ("- camera", "the content is .*; valid is a mapping of fields"),
        ("camera: {parameters: {}}", "camera: unknown field 'parameters'; valid are ros__parameters"),
        ("camera: {ros__parameters: {a: {b: 1}}}", r"node 'camera' has no parameter 'a\.b'; valid are task"),
        ("cammera: {ros__parameters: {}}", "unknown field 'cammera'; valid are arm, camera"),
        ("teleop: {ros__parameters: {device: x}}", "names the node 'teleop'; valid are twin, camera"),
        ("policy: {ros__parameters: {samples: 3}}", "sets 'samples' of policy; valid is to set it by the arguments"),
    ],
)
def test_a_parameter_file_that_is_none_is_refused(system, bundle, tmp_path, text, words):
    file = tmp_path / "mine.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BidError, match=f"^parameter file {file}:? {words}"):
        system(bundle=bundle, parameters=str(file))


@pytest.fixture
def mine(name, tmp_path):
    """A copy of a system, and a function that describes it."""
    folder = Path(shutil.copytree(find_system(name).folder, tmp_path / "mine"))
    return folder, lambda: describe(find_system(folder), RunArguments(driver="exercise"))


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("task.yaml", "horizon: 16", "horizn: 16", "unknown field 'horizn'; valid are name, robot"),
        ("task.yaml", "name: wrist", "name: side", "camera file .*: camera 'side' that the task observes is missing"),
        (
            "cameras.yaml",
            "\n  source: topic",
            "\n  source: radio",
            "camera file .*: third_person: .*source 'radio'; valid are",
        ),
        ("cameras.yaml", "fovy:", "fovi:", "camera file .*: third_person: unknown field 'fovi'; valid are source"),
        ("robot.yaml", "  dynamics:", "  dinamics:", "robot file .*: unknown field 'dinamics'; valid are"),
        ("robot.yaml", "payload_mass: 0", "payload_mass: 9", r"robot file .*: payload_mass is 9.*; valid is a number"),
        ("nodes.yaml", "safety:", "safty:", "parameter file .*: unknown field 'safty'; valid are arm, camera"),
    ],
)
def test_a_mistake_in_any_file_of_a_system_is_found_before_anything_starts(mine, file, old, new, sentence):
    folder, described = mine
    assert described()
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(BidError, match=sentence) as caught:
        described()
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["task.yaml", "cameras.yaml", "robot.yaml", "nodes.yaml"])
def test_a_file_that_a_system_lacks_is_named(mine, file):
    folder, described = mine
    (folder / file).unlink()
    with pytest.raises(BidError, match=f"system {folder} has no file {file}"):
        described()


def test_the_ports_of_a_ur_are_those_that_its_twin_serves():
    assert set(UR.ports) == {RTDE_PORT, DASHBOARD_PORT, GRIPPER_PORT, SCRIPT_PORT}


def test_the_command_line_runs_the_node_with_its_parameter_file(system, bundle, tmp_path):
    spec = system(bundle=bundle)["safety"]
    line = command_line(spec, tmp_path / "with a space")
    assert "-m bid_ros.nodes safety_node" in line and f"'{tmp_path}/with a space/safety.yaml'" in line
    written = yaml.safe_load((tmp_path / "with a space" / "safety.yaml").read_text())
    assert written == {"/safety": {"ros__parameters": dict(spec.parameters)}}


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


def test_other_launch_files_are_the_verbs_of_the_command(root):
    names = {file.name.split(".")[0] for file in (root / "launch").glob("*.launch.py")}
    systems = {"system", *shipped_systems()}
    verbs = next(action.choices for action in build_parser()._actions if action.dest == "verb")
    assert systems | {"teleop"} <= names <= systems | set(verbs)


def test_a_session_of_recording_is_a_system_whose_episodes_a_person_starts_and_records(system, bundle, tmp_path):
    found = system(driver="keyboard", human=True, device_settings="terminal: /dev/null", image_codec="jpeg:90")
    recorder, episode = found["recorder"].parameters, found["episode"].parameters
    assert recorder["episodes"].endswith("/episodes") and "bag" not in recorder
    assert recorder["image_codec"] == "jpeg:90" and json.loads(recorder["setup"])["driver"] == "keyboard"
    assert episode["human"] and not episode["takeover"] and episode["record_rest"] == 0.0


def test_a_person_who_may_take_over_has_a_teleop_node_that_everybody_watches(system, bundle):
    found = system(bundle=bundle, takeover="joy", device_settings="deadzone: 0.2")
    assert found["teleop"].parameters["takeover"] and found["teleop"].parameters["device"] == "joy"
    assert found["policy"].parameters["bundle"] == str(bundle)
    assert found["safety"].parameters["required"] == ["camera", "policy", "teleop", "arm"]
    assert found["arm"].parameters["required"] == ["policy", "teleop", "safety"]
    assert found["episode"].parameters["acting"] == "policy" and found["episode"].parameters["takeover"]
    assert {"policy", "teleop"} <= set(found["episode"].parameters["nodes"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"takeover": "scripted"}, "takeover is 'scripted', a program; valid is a device that a person holds"),
        (
            {"takeover": "joy", "driver": "scripted"},
            "takeover is 'joy', but the driver is scripted; valid with driver: policy",
        ),
        ({"takeover": "hands"}, "'hands' does not exist; valid are"),
        ({"image_codec": "gif"}, "image_codec is 'gif'; valid are raw, png"),
    ],
)
def test_what_cannot_be_recorded_is_refused(system, bundle, arguments, sentence):
    with pytest.raises(BidError, match=sentence):
        system(bundle=bundle, **arguments)


def test_the_texts_of_a_launch_file_become_the_arguments_of_a_run():
    texts = {item.name: "" for item in argument_fields()}
    assert parse_arguments(texts) == RunArguments()
    given = {"samples": "8", "moving": "0.02", "record": "False", "styles": "clean, diverse", "robot_ip": "10.0.0.2"}
    assert parse_arguments({**texts, **given}) == RunArguments(
        samples=8, moving=0.02, record=False, styles=("clean", "diverse"), robot_ip="10.0.0.2"
    )
    for item in argument_fields():
        assert len(item.metadata["help"]) > 5


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"samples": "many"}, "samples is 'many'; valid is a whole number"),
        ({"moving": "fast"}, "moving is 'fast'; valid is a number"),
        ({"rviz": "1"}, "rviz is '1'; valid are true and false"),
        ({"acts": "scripted"}, "argument 'acts' is now 'driver'"),
        ({"person": "true"}, "argument 'person' is now 'human'"),
        ({"typo": "3"}, "argument 'typo' does not exist; valid are robot_ip, peers"),
    ],
)
def test_texts_that_are_no_value_are_refused(texts, sentence):
    with pytest.raises(BidError, match=sentence):
        parse_arguments(texts)


@pytest.mark.parametrize("asked", ["", "osmesa"])
def test_mujoco_looks_for_no_opengl_of_its_own_and_a_renderer_for_the_one_asked_for(monkeypatch, asked):
    monkeypatch.delenv("BID_OPENGL", raising=False)
    monkeypatch.setenv("MUJOCO_GL", asked)
    variables = environment()
    assert (variables["MUJOCO_GL"], variables["BID_OPENGL"]) == ("disable", asked)
    monkeypatch.setenv("MUJOCO_GL", variables["MUJOCO_GL"])  # of a node that starts others
    monkeypatch.setenv("BID_OPENGL", variables["BID_OPENGL"])
    assert environment()["BID_OPENGL"] == asked


@pytest.fixture
def launched_file(root, tmp_path):
    """Start the actions of a launch file with these arguments, without running them."""
    if importlib.util.find_spec("launch_ros") is None:
        pytest.skip("ROS's launch is not installed")
    from launch import LaunchContext

    def start(file, argv=(), **arguments):
        spec = importlib.util.spec_from_file_location(f"{file}_launch", root / "launch" / f"{file}.launch.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        context = LaunchContext(argv=argv)
        context.extend_locals({"current_launch_file_path": spec.origin})
        *declared_first, start_nodes = module.generate_launch_description().entities
        context.launch_configurations.update({"out": str(tmp_path / "out"), **arguments})
        for argument in declared_first:
            argument.execute(context)
        return start_nodes.execute(context)

    return start


@pytest.fixture
def launched(root, name, launched_file, tmp_path):
    """Start a system's launch file with these arguments, without running it."""
    bundle = str(make_tiny_bundle(tmp_path / "tiny", load_task(root / "config" / name / "task.yaml")))
    return lambda argv=(), **arguments: launched_file(name, argv, **{"bundle": bundle, **arguments})


def test_a_launch_file_puts_a_person_at_the_controls_as_the_command_does(launched_file, name):
    from launch.actions import LogInfo
    from launch.utilities import perform_substitutions

    from launch import LaunchContext

    actions = launched_file("teleop", system=name, device="page", device_settings="port: 8123", episodes="2")
    nodes = {node.node_executable: node for node in actions if hasattr(node, "node_executable")}
    assert "teleop_node" in nodes and "policy_node" not in nodes
    values = {
        perform_substitutions(LaunchContext(), key): value
        for executable in ("teleop_node", "episode_node")
        for key, value in nodes[executable]._Node__parameters[0].items()
    }
    given = {key: value for key, value in values.items() if key in ("episodes", "timeout_s", "moving")}
    assert given == {"episodes": 2, "timeout_s": 120.0, "moving": 0.0}
    assert "port: 8123" in perform_substitutions(LaunchContext(), values["device_settings"])
    (known,) = [action for action in actions if isinstance(action, LogInfo)]
    assert "drive with the page http://127.0.0.1:8123/" in perform_substitutions(LaunchContext(), known.msg)
    with pytest.raises(BidError, match="'wand' does not exist; valid are exercise, gamepad"):
        launched_file("teleop", system=name, device="wand")


def test_the_launch_file_makes_the_described_nodes(launched, system, bundle):
    made = [action for action in launched(rviz="true") if hasattr(action, "node_executable")]
    assert {node.node_executable for node in made} == {
        spec.executable for spec in system(bundle=bundle, rviz=True).values()
    }


def test_the_launch_file_tells_its_nodes_and_nothing_else_who_supervises_them(launched):
    from launch.actions import ExecuteProcess, SetEnvironmentVariable
    from launch.utilities import perform_substitutions

    from launch import LaunchContext

    actions = launched(rviz="true")
    assert not [action for action in actions if isinstance(action, SetEnvironmentVariable)]
    words = lambda text: perform_substitutions(LaunchContext(), text)  # noqa: E731
    for process in (action for action in actions if isinstance(action, ExecuteProcess)):
        own = {words(name): words(value) for name, value in process.process_description.additional_env}
        assert own["BID_SUPERVISOR"] == str(os.getpid())


def test_only_the_end_of_a_whole_run_is_a_success_of_the_launch(launched):
    from launch.actions import RegisterEventHandler, Shutdown
    from launch.events.process import ProcessExited

    from launch import LaunchContext

    def ends(name, status, context):
        handler = next(action for action in launched() if isinstance(action, RegisterEventHandler)).event_handler
        process = {"action": None, "cmd": [], "cwd": None, "env": None, "pid": 1}
        return handler.handle(ProcessExited(name=name, returncode=status, **process), context)

    context = LaunchContext()
    assert [type(action) for action in ends("episode-7", 0, context)] == [Shutdown]
    for name, status in (("episode-7", 3), ("arm-4", 2), ("policy-5", 0)):
        with pytest.raises(BidError, match=f"{name[:-2]} ended first .status {status}.*, so the run ends"):
            ends(name, status, context)
    context._set_is_shutdown(True)
    assert ends("arm-4", 2, context) == []


def test_an_argument_that_ros_would_ignore_is_refused_where_the_launch_file_itself_was_started(
    launched, name, monkeypatch
):
    monkeypatch.setattr("sys.argv", ["ros2", "launch", "bid_ros", f"{name}.launch.py"])
    with pytest.raises(BidError, match="argument 'typo' does not exist; valid are robot_ip"):
        launched(argv=["episodes:=1", "typo:=3"])
    assert launched(argv=["episodes:=1", "sigterm_timeout:=9"])
    monkeypatch.setattr("sys.argv", ["ros2", "launch", f"./{name}.launch.py"])
    monkeypatch.chdir(Path(__file__).parents[2] / "launch")
    with pytest.raises(BidError, match="typo"):
        launched(argv=["typo:=3"])
    monkeypatch.chdir("/")
    for file in ("two_robots.launch.py", f"{name}.launch.py"):  # a file of the user's own includes this one
        monkeypatch.setattr("sys.argv", ["ros2", "launch", "mine", file])
        assert launched(argv=["typo:=3"])


def test_params_file_is_another_name_of_the_parameter_file(launched, tmp_path):
    from launch.utilities import perform_substitutions

    from launch import LaunchContext

    given = tmp_path / "given.yaml"
    given.write_text("camera:\n  ros__parameters: {tolerance_s: 0.5}\n")
    for name in ("parameters", "params_file"):
        (camera,) = [
            item for item in launched(**{name: str(given)}) if getattr(item, "node_executable", "") == "camera_node"
        ]
        values = {
            perform_substitutions(LaunchContext(), key): value for key, value in camera._Node__parameters[0].items()
        }
        assert values["tolerance_s"] == 0.5
    with pytest.raises(BidError, match="parameters and params_file are both given; valid is one of them"):
        launched(parameters=str(given), params_file=str(given))
    given.write_text("camera:\n  ros__parameters: {tolerance: 0.5}\n")
    with pytest.raises(BidError, match="node 'camera' has no parameter 'tolerance'"):
        launched(params_file=str(given))


@pytest.mark.parametrize(("by_person", "status"), [(True, 130), (False, 0)])
def test_ctrl_c_shows_in_the_exit_status_of_the_launch(launched, by_person, status):
    """In a process of its own, which ends as ros2 launch does: with status 0."""
    from launch.actions import RegisterEventHandler
    from launch.event_handlers import OnShutdown
    from launch.events import Shutdown

    from launch import LaunchContext

    handlers = [item.event_handler for item in launched() if isinstance(item, RegisterEventHandler)]
    (handler,) = [item for item in handlers if isinstance(item, OnShutdown)]
    process = os.fork()
    if not process:
        handler.handle(Shutdown(reason="", due_to_sigint=by_person), LaunchContext())
        atexit._run_exitfuncs()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == status


@pytest.mark.parametrize("installed", [True, False])
def test_rviz_is_started_where_it_is_installed_and_missed_with_a_sentence(launched, tmp_path, monkeypatch, installed):
    from launch.actions import ExecuteProcess, LogInfo

    monkeypatch.setenv("PATH", str(tmp_path))
    if installed:
        (tmp_path / "rviz2").touch(mode=0o755)
    actions = launched(rviz="true")
    started = [action for action in actions if type(action) is ExecuteProcess]
    assert len(started) == installed
    assert len([action for action in actions if isinstance(action, LogInfo)]) == (not installed)


@pytest.mark.parametrize("installed", [True, False])
def test_the_command_of_rviz_ends_with_the_front_end(name, tmp_path, monkeypatch, installed):
    found, arguments = find_system(name), RunArguments()
    monkeypatch.setenv("PATH", str(tmp_path))
    if installed:
        (tmp_path / "rviz2").touch(mode=0o755)
    wanted = ["setpriv", "--pdeathsig", "TERM", str(tmp_path / "rviz2"), *rviz_arguments(found, arguments)]
    assert rviz_command(found, arguments) == (wanted if installed else [])


def test_two_systems_in_one_launch_live_in_namespaces_of_their_own(launched):
    def made(**arguments):
        nodes = [action for action in launched(**arguments) if hasattr(action, "node_executable")]
        return {node._Node__node_namespace for node in nodes}

    assert (made(ros_namespace="/left"), made(ros_namespace="/right", namespace="arm")) == ({"/left"}, {"/right/arm"})
    with pytest.raises(BidError, match="action_horizon is 64; valid is 1 to 15"):
        made(action_horizon="64")
