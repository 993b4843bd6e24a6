"""``bid replay`` and ``bid retrace``: what they refuse, and what they print."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from recording.conftest import kit, make_run  # noqa: F401
from tiny_bundle import make_tiny_bundle

from bid_ros.cli import main
from bid_ros.commands import up
from bid_ros.core.task import load_task
from bid_ros.core.topics import ARM_STATUS, IMAGE_TYPE, TOPICS, camera_topic
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter


@pytest.fixture
def system(root, tmp_path):
    """Return a system like that of the Franka, whose cameras have the size of the recordings."""
    folder = tmp_path / "system"
    folder.mkdir()
    for file in (root / "config" / "franka_place").glob("*.yaml"):
        content = yaml.safe_load(file.read_text())
        if file.name == "task.yaml":
            for feature in content["observation"][:2]:
                feature["shape"] = [6, 8, 3]
        if file.name == "system.yaml":
            content["policy"]["bundle"] = "tiny"
        (folder / file.name).write_text(yaml.safe_dump(content))
    make_tiny_bundle(folder / "tiny", load_task(folder / "task.yaml"))
    return folder


@pytest.fixture
def bag(make_run, tmp_path):  # noqa: F811
    return make_run().write(tmp_path / "bag")


def test_a_bag_without_decisions_is_decided_on_where_a_live_system_would(system, bag, capsys):
    assert main(["replay", str(bag), "--system", str(system), "--runtime", "onnx", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["decisions"] == 20 and counts["compared"] == 0 and not counts["exact"]
    assert main(["replay", str(bag), "--system", str(system), "--runtime", "onnx", "--check"]) == 1
    printed = capsys.readouterr()
    assert "| 1 | 20 | 0 |" in printed.out and "not every decision is the recorded one: 0 of 0" in printed.err


def test_a_bag_names_its_system_by_the_run_beside_it_or_is_told(system, bag, capsys):
    assert main(["replay", str(bag)]) == 2
    assert "does not say which task was recorded; give it with --system" in capsys.readouterr().err
    (bag.parent / "run.json").write_text(json.dumps({"task": "unknown"}))
    assert main(["replay", str(bag)]) == 2
    assert "is of the task 'unknown', which names no system; give it with --system" in capsys.readouterr().err
    (bag.parent / "run.json").write_text(json.dumps({"task": "franka_place", "system": str(system)}))
    assert main(["replay", str(bag), "--runtime", "onnx"]) == 0


def test_a_topic_of_another_name_is_taken_by_remap(system, make_run, tmp_path, capsys):  # noqa: F811
    run = make_run()
    run.items = [(at, "/eye" if topic == camera_topic("wrist") else topic, it) for at, topic, it in run.items]
    bag = run.write(tmp_path / "bag", like={"/eye": "sensor_msgs/msg/Image"})
    given = ["replay", str(bag), "--system", str(system), "--runtime", "onnx", "--json"]
    assert main(given) == 2
    assert "has no topic camera/wrist/image, which delivers 'wrist'" in capsys.readouterr().err
    assert main([*given, "--remap", f"{camera_topic('wrist')}:=/eye"]) == 0
    assert json.loads(capsys.readouterr().out)["decisions"] == 20


def test_a_policy_that_is_not_the_one_of_the_bag_is_named(root, tmp_path, capsys):
    bag = root / "test" / "golden" / "bags" / "franka_place"
    tiny = make_tiny_bundle(tmp_path / "tiny", load_task(root / "config" / "franka_place" / "task.yaml"))
    (tmp_path / "system.yaml").write_text(f"like: {root}/config/franka_place\npolicy: {{bundle: tiny, decoder: bid}}\n")
    given = ["replay", str(bag), "--system", str(tmp_path), "--runtime", "onnx"]
    assert main(given) == 0
    said = (
        r"the policy of the bag was \S+@\w{12}, and that of this replay is tiny@\w{12}: name the recorded one with --"
    )
    assert re.search(said, capsys.readouterr().err)
    assert main([*given, "--bundle", str(tiny)]) == 0
    assert not re.search(said, capsys.readouterr().err), "a person chose it"


def test_a_bag_in_which_nothing_can_be_decided_is_refused(system, tmp_path, capsys):
    with BagWriter(tmp_path / "bag") as writer:
        for topic in (camera_topic("third_person"), camera_topic("wrist"), ARM_STATUS):
            writer.add_topic(f"/{topic}", find_definition(TOPICS[topic].type_name if topic in TOPICS else IMAGE_TYPE))
    given = ["replay", str(tmp_path / "bag"), "--system", str(system), "--runtime", "onnx"]
    assert main(given) == 2
    assert "has no moment to decide at; valid is one with decisions, or frames" in capsys.readouterr().err


def test_nothing_moves_unless_a_person_says_yes(system, bag, make_run, tmp_path, capsys, monkeypatch):  # noqa: F811
    given = ["retrace", str(system), str(bag)]
    assert main(given) == 2
    printed = capsys.readouterr().err
    assert "motion       2.0 s, at 0.5 times its speed 4.0 s" in printed and "arm          franka, twin" in printed
    assert "nobody can answer here whether the arm may move" in printed
    assert "recorded     for task" not in printed
    other = make_run().write(tmp_path / "other", about={"task": "pour_tea"})
    assert main(["retrace", str(system), str(other)]) == 2
    assert "recorded     for task 'pour_tea', not 'franka_place': are table, tool and" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert main(given) == 2
    assert "not confirmed, so nothing moves" in capsys.readouterr().err


def test_a_robot_without_its_stages_follows_nothing_unless_a_person_says_so(system, bag, capsys, monkeypatch, tmp_path):
    """The refusal comes from where ``bid up`` has its own, before anything is started."""
    started = []
    monkeypatch.setattr(up, "run_nodes", lambda system, arguments, specs, last: started.append(arguments) or 0)
    given = ["retrace", str(system), str(bag), "--robot-ip", "172.16.0.2", "--yes", "--out", str(tmp_path / "out")]
    assert main(given) == 2
    refusal = capsys.readouterr().err
    assert "it has passed 0 of 6 stages; valid is" in refusal and "or --unstaged; of ros2 launch" in refusal
    assert not started
    assert main([*given, "--unstaged"]) == 0
    (arguments,) = started
    assert (arguments.driver, arguments.robot_ip, arguments.unstaged) == ("retrace", "172.16.0.2", True)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--speed", "1.2"], "--speed is 1.2; valid is 0.05 to 1.0"),
        (["--episode", "1"], "name the episode N of a bag BAG:N"),
    ],
)
def test_a_motion_that_is_not_there_is_refused(system, bag, capsys, given, sentence):
    assert main(["retrace", str(system), str(bag), *given]) == 2
    assert sentence in capsys.readouterr().err
    assert main(["retrace", str(system), f"{bag}:1"]) == 2
    assert "episode is 1; valid in" in capsys.readouterr().err


def test_the_shadow_of_a_bag_says_what_the_decisions_would_move(system, bag, capsys):
    given = ["replay", str(bag), "--system", str(system), "--runtime", "onnx"]
    assert main([*given, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["shadow"]
    assert report["chunks"] == 20 == report["passed"] + report["refused"] and report["executed"] == 0
    assert main(given) == 0
    printed = capsys.readouterr().out
    assert "of 20 would have passed" in printed and "executed     nothing of the policy" in printed
