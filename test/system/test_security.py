"""The policy of DDS Security: equal to what nodes do and to the topics, and keys that do not protect are refused."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from bid_ros.cli import main
from bid_ros.core import topics
from bid_ros.core.errors import BidError
from bid_ros.core.topics import TOPICS, chunk_topic
from bid_ros.safety.arbiter import PRIORITY
from bid_ros.system.endpoints import EVERY_NODE, endpoints_of
from bid_ros.system.folder import find_system
from bid_ros.system.security import FILES, check_security, enclave_arguments, enclave_of, policy_xml

SECURED = {"ROS_SECURITY_ENABLE": "true", "ROS_SECURITY_STRATEGY": "Enforce", "RMW_IMPLEMENTATION": "rmw_other"}
# Modules of nodes/ that a node has beside its own, and the services' other ends.
PARTS = {
    "sequence": "episode", "recovery": "episode", "run_events": "episode", "operator": "episode",
    "bystander": "episode", "start_watch": "episode", "instruction": "policy", "shadowing": "safety",
    "arm_report": "arm", "policy_report": "policy", "robot_model": "monitor", "replay_node": "", "client": "",
    "replay_policy_node": "", "features": "policy", "base": "", "topics": "", "following": "", "camera_probe": "",
    "ros_bus": "", "grants": "arm", "said": "safety", "camera_views": "camera", "policy_site": "policy",
    "arm_sequence": "episode", "arms_episode_node": "episode", "arms_policy_node": "policy",
}  # fmt: skip


@pytest.fixture(params=["franka_place", "ur5_pick"])
def system(request):
    return find_system(request.param)


def test_every_recorded_topic_has_a_node_that_may_publish_it(system):
    nodes = endpoints_of(system, twin=True)
    published = {name for ends in nodes.values() for name in ends.publish}
    joints = {topics.JOINT_REFERENCE} if system.task.columns("joints") is None else set()
    assert set(TOPICS) - published - joints == set()
    constants = {str(getattr(topics, name)) for name in dir(topics) if name.isupper()}
    heard = {name for ends in nodes.values() for name in (*ends.subscribe, *ends.call)} - published
    served = {name for ends in nodes.values() for name in ends.serve}
    devices = {name for name in heard - served if name not in constants}
    assert all(name.startswith(("joy", "leader", "/")) for name in devices), "only devices are elsewhere"


@pytest.mark.parametrize("twin", [True, False])
def test_what_moves_the_arm_has_one_publisher_each(system, twin):
    nodes = endpoints_of(system, twin)
    moving = (*map(chunk_topic, PRIORITY), topics.SAFETY_CHUNK, topics.SAFETY_STATE, topics.GRANT, topics.ARM_STATUS)
    for topic in moving:
        assert [name for name, ends in nodes.items() if topic in ends.publish] == [
            {topics.GRANT: "episode", topics.ARM_STATUS: "arm"}.get(topic, topic.split("/")[0])
        ]
    callers = {name for name, ends in nodes.items() if topics.SAFETY_RESET in ends.call}
    assert callers == ({"bid_reset", "episode"} if twin else {"bid_reset"}), "the run resets no robot"
    assert ("twin" in nodes) == twin


def named(call: ast.Call, position: int) -> str | None:
    """The topic or service in a call's arguments, if it is a constant of core.topics."""
    if len(call.args) <= position:
        return None
    node = call.args[position]
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    found = getattr(topics, name, None) if name.isupper() else None
    return found if isinstance(found, str) else None


def test_the_sources_of_the_nodes_open_no_end_beyond_the_policy(root):
    """Each call in nodes/ that opens an end of a named topic or service is one that its node has."""
    nodes = endpoints_of(find_system("franka_place"), twin=True)
    nodes["arm"] = type(nodes["arm"])(
        nodes["arm"].publish | {topics.JOINT_REFERENCE}, nodes["arm"].subscribe, nodes["arm"].serve, nodes["arm"].call
    )
    ends = {"advertise": ("publish", 0), "subscribe": ("subscribe", 0), "listen": ("subscribe", 0),
            "serve": ("serve", 1), "create_client": ("call", 1)}  # fmt: skip
    seen = 0
    for path in sorted((root / "bid_ros" / "nodes").glob("*.py")):
        node = PARTS.get(path.stem, path.stem.removesuffix("_node"))
        for call in ast.walk(ast.parse(path.read_text())):
            if not node or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            right, position = ends.get(call.func.attr, ("", 0))
            name = named(call, position) if right else None
            if name is not None:
                assert name in getattr(nodes[node], right), f"{path.name}: {node} may not {right} {name}"
                seen += 1
    assert seen > 40


def test_the_policy_is_sros2s(system, tmp_path):
    """Elements, attributes and order as sros2/policy/schemas/policy.xsd has them."""
    nodes = endpoints_of(system, twin=False)
    policy = ElementTree.fromstring(policy_xml(nodes, "/left"))
    assert (policy.tag, policy.attrib) == ("policy", {"version": "0.2.0"})
    (enclaves,) = policy
    assert [item.get("path") for item in enclaves] == [f"/bid/left/{name}" for name in nodes]
    rights = {"topics": ("topic", {"publish", "subscribe"}), "services": ("service", {"reply", "request"})}
    for enclave, (name, ends) in zip(enclaves, nodes.items(), strict=True):
        ((profile,),) = enclave
        assert (profile.tag, profile.attrib) == ("profile", {"ns": "/left", "node": name})
        for group in profile:
            inner, valid = rights[group.tag]
            assert len(group) and {item.tag for item in group} == {inner}
            assert set(group.attrib) <= valid and set(group.attrib.values()) == {"ALLOW"} and len(group.attrib) == 1
        written = {item.text for item in profile.findall("topics[@publish]/topic")}
        assert written == ends.publish and (set(EVERY_NODE) <= written or name.startswith("bid_"))


def test_the_verb_writes_it_and_says_what_follows(tmp_path, capsys):
    assert main(["secure", "ur5_pick", str(tmp_path / "policy.xml"), "--namespace", "left"]) == 0
    assert "ros2 security generate_artifacts -k KEYSTORE -p" in capsys.readouterr().out
    assert 'path="/bid/left/arm"' in (tmp_path / "policy.xml").read_text()


def test_a_robot_whose_driver_has_topics_of_its_own_is_refused(root, tmp_path):
    shutil.copytree(root / "config" / "ur5_pick", tmp_path / "over_ros")
    task = tmp_path / "over_ros" / "task.yaml"
    task.write_text(re.sub(r"(?m)^robot: \w+", "robot: ros", task.read_text()))
    with pytest.raises(BidError, match="robot 'ros' is driven through ROS"):
        endpoints_of(find_system(tmp_path / "over_ros"), twin=True)


def refusal(enclaves=(), **changes):
    with pytest.raises(BidError) as raised:
        check_security(enclaves, {**SECURED, **changes})
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_without_security_nothing_is_asked(tmp_path):
    check_security(["/bid/arm"], {})
    check_security(["/bid/arm"], {"ROS_SECURITY_ENABLE": "True"})  # as ROS itself, which takes "true" alone
    assert enclave_arguments("arm", "/left", {}) == []
    assert enclave_arguments("arm", "/left", SECURED) == ["--enclave", "/bid/left/arm"]
    assert enclave_of("bid_follow_4711") == "/bid/bid_follow"


def test_a_strategy_that_lets_nodes_without_keys_in_is_refused():
    for strategy in ("Permissive", ""):
        assert f"ROS_SECURITY_STRATEGY is '{strategy}'" in refusal(ROS_SECURITY_STRATEGY=strategy)


def test_the_wheels_are_refused_and_a_middleware_with_security_is_not(tmp_path):
    assert "built without security, as in the wheels" in refusal(RMW_IMPLEMENTATION="rmw_fastrtps_cpp")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "librmw_fastrtps_shared_cpp.so").write_bytes(b"\x7fELF DDS:Auth:PKI-DH")
    found = refusal(RMW_IMPLEMENTATION="rmw_fastrtps_cpp", AMENT_PREFIX_PATH=str(tmp_path))
    assert found.startswith("ROS_SECURITY_KEYSTORE is ''")


def test_a_keystore_that_others_can_read_or_that_lacks_something_is_refused(tmp_path):
    keystore = tmp_path / "keystore"
    assert "valid is the folder of a keystore" in refusal(ROS_SECURITY_KEYSTORE=str(keystore))
    folder = keystore / "enclaves" / "bid" / "arm"
    folder.mkdir(parents=True)
    for mode in (0o755, 0o750, 0o701):
        keystore.chmod(mode)
        assert f"others can read the keystore {keystore}" in refusal(ROS_SECURITY_KEYSTORE=str(keystore))
    keystore.chmod(0o700)
    for name in FILES[:-1]:
        (folder / name).write_text("")
    assert "enclave /bid/arm of the keystore" in refusal(["/bid/arm"], ROS_SECURITY_KEYSTORE=str(keystore))
    (folder / FILES[-1]).write_text("")
    check_security(["/bid/arm"], {**SECURED, "ROS_SECURITY_KEYSTORE": str(keystore)})


@pytest.mark.parametrize("words", [["bid_ros.nodes", "safety_node"], ["bid_ros.cli", "reset"]])
def test_a_program_on_the_wheels_does_not_start_and_says_why(root, words, monkeypatch):
    for name, value in {**SECURED, "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=root, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("error: ROS_SECURITY_ENABLE is true, and Fast DDS of")
    assert done.stderr.count("\n") == 1
