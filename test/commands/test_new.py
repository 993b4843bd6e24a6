"""``bid new`` and then ``bid up``: a task of one's own starts in the twin of its robot, and nobody has to type."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from forked_bid import bid

from bid_ros.commands.tasks import task_file_of_bags
from bid_ros.core.topics import EPISODE_EVENT, TOOL_POSE, camera_topic
from bid_ros.recording.dataset import Dataset
from bid_ros.recording.reader import BagReader


def bid_from_scratch(*arguments, limit_s):
    command = [sys.executable, "-m", "bid_ros.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit_s)


# One system starts as a person starts it; the other one imports nothing anew.
START = {"franka": bid_from_scratch, "ros": bid, "ur": bid}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("robot", list(START))
def test_a_new_system_runs_to_its_end(tmp_path, ros_domain, robot):
    system, out = tmp_path / "my_task", tmp_path / "out"
    assert bid("new", str(system), "--robot", robot).returncode == 0
    for file, change in (
        ("task.yaml", lambda task: task.update(episode_timeout=2.5)),
        # A test may share its computer with others; silence means less there.
        (
            "nodes.yaml",
            lambda nodes: [
                nodes[name]["ros__parameters"].update(heartbeat_deadline_s=2.0)
                for name in nodes
                if name in ("arm", "safety")
            ],
        ),
    ):
        content = yaml.safe_load((system / file).read_text())
        change(content)
        (system / file).write_text(yaml.safe_dump(content))
    done = START[robot]("up", str(system), "--episodes", "2", "--out", str(out), "--json", limit_s=150.0)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    run = json.loads(done.stdout)
    assert (run["task"], run["episodes"], run["safety_stops"]) == ("my_task", 2, 0)
    assert task_file_of_bags("", [out / "bag"]) == system / "task.yaml"
    assert [result["outcome"] for result in run["results"]] == ["not judged"] * 2
    assert "not judged: 2 episodes timed out; this twin has no judge" in done.stderr
    with BagReader(out / "bag") as reader:
        events = list(reader.messages([EPISODE_EVENT]))
        assert [item.message.kind for item in events] == [0, 1, 2, 0, 1, 2], "the record does not have every event"
        start, end = (item.stamp_ns for item in events[1:3])
        moved = [item.message.pose.position.y for item in reader.messages([TOOL_POSE], start, end)]
        assert all(reader.counts[reader.recorded_name(camera_topic(name))] > 30 for name in ("third_person", "wrist"))
    assert max(moved) - min(moved) > 0.02, "the device did not move the arm"
    assert (out / "run.gif").stat().st_size > 1000


@pytest.mark.long
@pytest.mark.timeout(300)
def test_an_arm_without_a_gripper_moves_and_its_episodes_become_rows(tmp_path, ros_domain, patient):
    system, out, made = tmp_path / "bare", tmp_path / "out", tmp_path / "made.npz"
    assert bid("new", str(system), "--robot", "ros").returncode == 0
    task, robot = (yaml.safe_load((system / name).read_text()) for name in ("task.yaml", "robot.yaml"))
    for group in ("observation", "action"):
        task[group] = [item for item in task[group] if item["kind"] != "gripper"]
    (system / "task.yaml").write_text(yaml.safe_dump({**task, "episode_timeout": 4.0}))
    (system / "robot.yaml").write_text(yaml.safe_dump({**robot, "gripper": None}))
    run = ("up", str(system), "--episodes", "1", "--out", str(out), "--json", "--parameters", patient)
    done = bid(*run, limit_s=150.0)
    assert done.returncode == 0, done.stderr
    assert [result["outcome"] for result in json.loads(done.stdout)["results"]] == ["not judged"]
    convert = ("data", "convert", str(out / "bag"), str(made), "--to", "npz", "--task", str(system), "--outcome", "all")
    assert bid(*convert, limit_s=60.0).returncode == 0
    assert Dataset.load(made).rows > 20 and Dataset.load(made).actions.shape[1] == 9
