"""What happens before the first process of a run starts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from tiny_bundle import make_tiny_bundle, write_manifest

from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.policy.bundle import bundle_sha256
from bid_ros.policy.ranges import task_ranges
from bid_ros.policy.remote.config import RemoteConfig
from bid_ros.policy.remote.pointing import write_remote_bundle
from bid_ros.recording.writer import BagWriter
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.new import new_system
from bid_ros.system.preparation import prepare
from bid_ros.system.run import RunArguments


@pytest.fixture
def specs(root, tmp_path):
    """The nodes of a run with these arguments."""
    bundle = make_tiny_bundle(tmp_path / "bundle", load_task(root / "config" / "franka_place" / "task.yaml"))

    def make(**arguments):
        return describe(find_system("franka_place"), RunArguments(bundle=str(bundle), **arguments))

    return make


def test_a_run_starts_again_after_a_start_that_was_aborted(specs, tmp_path):
    """A recorder that was ended while it started leaves a bag without a message."""
    out = tmp_path / "out"
    for earlier in range(1, 4):
        with BagWriter(out / "bag"):
            pass
        written = (out / "bag" / "bag_0.mcap").read_bytes()
        prepare(specs(out=str(out)), out)
        assert not (out / "bag").exists()
        assert (tmp_path / f"out.{earlier}" / "bag" / "bag_0.mcap").read_bytes() == written


@pytest.mark.parametrize("left", ["logs", "parameters", "run.json", "events.jsonl"])
def test_nothing_that_an_earlier_run_left_is_written_over(specs, tmp_path, left):
    out = tmp_path / "out"
    (out / left).mkdir(parents=True)
    (out / left / "kept").write_text("")
    prepare(specs(), out)
    assert not (out / left / "kept").exists() and (tmp_path / "out.1" / left / "kept").exists()


def test_a_folder_that_another_run_writes_to_stays_where_it_is(specs, root, tmp_path):
    out = tmp_path / "out"
    code = (
        "import sys; from pathlib import Path; from bid_ros.core.lock import lock_folder;"
        "lock_folder(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as other:
        assert other.stdout.readline() == "locked\n"
        (out / "episodes").mkdir()
        with pytest.raises(BidError, match=f"process {other.pid} writes to .*; valid is another folder"):
            prepare(specs(), out)
        assert (out / "episodes").is_dir()
        other.stdin.close()
    prepare(specs(), out)
    assert (tmp_path / "out.1" / "episodes").is_dir()


def test_a_folder_of_something_else_stays_where_it_is(specs, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    prepare(specs(), out)
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"decoder": "best"}, "decoder 'best' does not exist; valid are"),
        ({"action_horizon": 20}, "action_horizon is 20; valid is 1 to 15"),
        (
            {"decoder": "rtc"},
            "'rtc' needs the network's gradient; the policy's runtime is 'auto', valid is torch",
        ),
    ],
)
def test_what_cannot_work_moves_nothing(specs, tmp_path, arguments, sentence):
    out = tmp_path / "out"
    (out / "logs").mkdir(parents=True)
    with pytest.raises(BidError, match=sentence):
        prepare(specs(**arguments), out)
    assert (out / "logs").is_dir()


def test_a_runtime_that_cannot_be_used_starts_nothing_unless_there_is_a_fallback(specs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi, so no driver
    out, file = tmp_path / "out", tmp_path / "parameters.yaml"
    wanted = {"runtime": "tensorrt:fp16"}
    file.write_text(yaml.safe_dump({"policy": {"ros__parameters": wanted}}))
    with pytest.raises(BidError, match="the policy node cannot use runtime 'tensorrt:fp16': there is no NVIDIA driver"):
        prepare(specs(parameters=str(file)), out)
    file.write_text(yaml.safe_dump({"policy": {"ros__parameters": {**wanted, "fallback_runtime": "onnx"}}}))
    prepare(specs(parameters=str(file)), out)


def test_a_task_that_commands_a_gripper_needs_one(tmp_path):
    system = new_system(tmp_path / "bare", "ros")
    file = system.file("robot.yaml")
    specs = [spec for spec in describe(system, RunArguments()) if spec.name == "arm"]
    prepare(specs, tmp_path / "out")
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "gripper": None}))
    with pytest.raises(
        BidError, match=r"task 'bare' commands a gripper, and the robot of .*robot\.yaml has none; valid"
    ):
        prepare(specs, tmp_path / "out")


def test_a_camera_whose_video_file_is_not_there_starts_nothing(tmp_path):
    system = new_system(tmp_path / "filmed", "ros")
    file = system.file("cameras.yaml")
    twin = {"twin": {"source": "uvc", "address": "table.mp4"}}
    file.write_text(
        yaml.safe_dump({**yaml.safe_load(file.read_text()), "wrist": {"source": "topic", "address": "/w", **twin}})
    )
    with pytest.raises(BidError, match=r"camera '.*filmed/table\.mp4' does not exist; valid is a device number"):
        prepare(describe(system, RunArguments()), tmp_path / "out")


def test_a_task_with_other_joints_than_the_robot_s_file_names_starts_nothing(tmp_path):
    system = new_system(tmp_path / "seven", "ros")
    content = yaml.safe_load(system.file("task.yaml").read_text())
    content["observation"].append({"name": "joint_positions", "kind": "joints", "shape": [7]})
    system.file("task.yaml").write_text(yaml.safe_dump(content))
    specs = [spec for spec in describe(find_system(tmp_path / "seven"), RunArguments()) if spec.name == "arm"]
    said = r"'joint_positions' of shape \[7\], and .*robot\.yaml names 6 joints; valid is \[6\]"
    with pytest.raises(BidError, match=said):
        prepare(specs, tmp_path / "out")


@pytest.mark.parametrize("limits", [{"gripper_max": 0.05}, {"gripper_min": 0.04}])
def test_a_task_whose_openings_would_never_open_or_close_the_gripper_starts_nothing(tmp_path, limits):
    system = new_system(tmp_path / "narrow", "ros")
    file = system.file("task.yaml")
    content = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**content, "limits": content["limits"] | limits}))
    specs = [spec for spec in describe(find_system(tmp_path / "narrow"), RunArguments()) if spec.name == "arm"]
    with pytest.raises(
        BidError,
        match=r"commands openings from .* closes below 0\.03 and opens above 0\.07 m; valid are gripper_min and",
    ):
        prepare(specs, tmp_path / "out")


def test_a_decoder_that_the_space_of_a_bundle_cannot_serve_starts_nothing(task, tmp_path):
    bundle = make_tiny_bundle(tmp_path / "deep", task, steps=5)
    edited = yaml.safe_load((bundle / "bundle.yaml").read_text())
    edited["space"]["past_rows"] = 0  # the network's last row is then one that the task has not
    write_manifest(bundle, edited)

    def run(decoder):
        prepare(
            describe(find_system("franka_place"), RunArguments(bundle=str(bundle), decoder=decoder)), tmp_path / "o"
        )

    with pytest.raises(
        BidError, match="decoder 'warmstart' starts from its last decision, and the space of the bundle"
    ):
        run("warmstart")
    run("bid")


@pytest.mark.parametrize("gradients", [True, False])
def test_rtc_of_a_policy_elsewhere_needs_a_server_that_derives_its_network(task, tmp_path, gradients):
    said = {
        "name": "place",
        "sha256": "0" * 64,
        "task": task.name,
        "task_signature": task.signature(),
        "has_gradients": gradients,
        "observation": {name: item.to_dict() for name, item in task_ranges(task)[0].items()},
        "action": task_ranges(task)[1].to_dict(),
        "action_spread": task_ranges(task)[2].tolist(),
    }
    bundle = write_remote_bundle(tmp_path / "remote", task, RemoteConfig("ws://gpu:8000"), said)

    def run(decoder):
        prepare(
            describe(find_system("franka_place"), RunArguments(bundle=str(bundle.path), decoder=decoder)),
            tmp_path / "o",
        )

    if gradients:
        run("rtc")
        return
    with pytest.raises(BidError, match=r"which the server at ws://gpu:8000 did not have; valid is one of bid"):
        run("rtc")
    run("bid")


def test_the_first_line_of_the_events_says_what_is_started_and_with_which_limits(specs, tmp_path):
    out = tmp_path / "out"
    prepare(specs(out=str(out), seed=7), out)
    (line,) = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    assert (line["kind"], line["task"], line["robot"], line["seed"]) == ("start", "franka_place", "franka", 7)
    assert line["twin"] and line["address"].startswith("127.")
    assert line["limits"]["max_speed"] == specs_task().limits.max_speed and line["limits"]["above"]["speed"] == "scale"
    assert line["bundle_sha256"] == bundle_sha256(tmp_path / "bundle")
    assert len(line["files_sha256"]["robot.yaml"]) == 64 and "bid_ros" in line["software"]


def specs_task():
    return load_task(find_system("franka_place").file("task.yaml"))
