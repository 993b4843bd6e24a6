"""Scripted demonstrations in lockstep: what they record, and the verb that writes a data set of them."""

import json
import signal
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.cli import main
from bid_ros.core.errors import BidError, RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.task import load_task
from bid_ros.episodes.demonstrating import LockstepDemonstrations
from bid_ros.recording.dataset import Dataset
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.system.folder import find_system
from bid_ros.tasks.placing.cup_path import episode_scene
from bid_ros.tasks.registry import build_stage

CLOSED_M = 0.01


@pytest.fixture
def record(root):
    stages = []

    def run(system, style, seed):
        task = load_task(root / "config" / system / "task.yaml")
        stages.append(build_stage(task, GripperThresholds(0.03, 0.07)))
        return task, LockstepDemonstrations(task, stages[-1]).record(style, seed)

    yield run
    for stage in stages:
        stage.close()


def test_a_demonstration_places_the_object_and_can_be_trained_on(record):
    task, found = record("franka_place", "clean", 100_000)
    found.validate(task)
    assert found.labels == ("clean",) and found.seeds.tolist() == [100_000] and not found.truncated.any()
    assert np.diff(found.stamps_ns).tolist() == [task.dt_ns] * (found.rows - 1)
    tool, width = found.observations["tool_position"], found.observations["gripper_width"]
    cup = episode_scene(100_000, 0.0).cup_start
    assert np.linalg.norm(tool[-1, :2] - cup) < 0.005 and width[0] < width[-1]
    # The tool lags behind the command, by less than a row.
    behind = [np.linalg.norm(tool - found.actions[:, :3], axis=1).mean()]
    behind.append(np.linalg.norm(tool[1:] - found.actions[:-1, :3], axis=1).mean())
    assert 0 < behind[0] < 0.02 and behind[1] < 0.02
    assert not np.array_equal(found.observations["wrist"][0], found.observations["wrist"][-1])


def test_a_seed_gives_the_same_demonstration_again(record):
    (_, first), (_, second) = (record("franka_place", "diverse", 200_003) for _ in range(2))
    assert first.sha256 == second.sha256


def test_a_recovery_begins_after_its_preparation(record):
    _, found = record("ur5_pick", "recover", 250_001)
    assert found.observations["gripper_width"][0] < 0.07 and found.observations["gripper_width"][-1] > 0.07
    assert found.actions[0, -1] < CLOSED_M  # the fingers are told to stay closed at first


def test_a_demonstration_that_fails_is_none(record, monkeypatch):
    monkeypatch.setattr("bid_ros.tasks.placing.stage.PLAY_M", -1.0)  # then no place is inside the cup
    assert record("franka_place", "clean", 100_000)[1] is None


def test_a_style_that_the_task_lacks_is_refused(record):
    with pytest.raises(BidError, match="style is 'hasty'; valid are clean, diverse"):
        record("franka_place", "hasty", 1)


def test_the_verb_writes_a_data_set_and_keeps_what_it_has(tmp_path, capsys):
    out = tmp_path / "data.npz"
    command = ["demos", "franka_place", "--lockstep", str(out), "--count"]
    assert main([*command, "clean=1"]) == 0, "of a style that is not named there is none"
    part = tmp_path / "data.parts" / "clean_100000.npz"
    written = part.stat().st_mtime_ns
    capsys.readouterr()
    assert main([*command, "clean=2", "diverse=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["demonstrations"] == {"clean": 2, "diverse": 1}
    assert Dataset.load(out).labels == ("clean", "clean", "diverse") and part.stat().st_mtime_ns == written
    assert main([*command, "clean=0", "diverse=0"]) == 2
    assert "no demonstration is asked for" in capsys.readouterr().err


def test_the_verb_takes_no_demonstrations_of_another_task(tmp_path, capsys):
    command = ["--lockstep", str(tmp_path / "data.npz"), "--count", "clean=1"]
    assert main(["demos", "franka_place", *command]) == 0
    assert main(["demos", "ur5_pick", *command]) == 2
    assert "data.parts holds demonstrations made with task 'franka_place', not 'ur5_pick'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counts", "styles"),
    [([], ["clean", "diverse"]), (["diverse=2"], ["diverse"]), (["clean=0", "diverse=1"], ["diverse"])],
)
def test_only_styles_that_are_named_are_recorded(tmp_path, monkeypatch, capsys, counts, styles):
    begun = []

    def start(system, arguments):
        begun.append((*arguments.styles, arguments.episodes))
        return 0

    monkeypatch.setattr("bid_ros.commands.demos.start", start)
    monkeypatch.setattr(
        "bid_ros.commands.demos._count", lambda out, label: (sum(n for of, n in begun if of == label), 0)
    )
    chosen = ["--count", *counts] if counts else []
    assert main(["demos", "franka_place", "--out", str(tmp_path), "--json", *chosen]) == 0
    assert [style for style, _ in begun] == styles
    assert main(["demos", "franka_place", "--out", str(tmp_path), "--count", "clean=2", "clean=3"]) == 2
    assert "count names clean twice, 2 and 3; valid is once" in capsys.readouterr().err
    assert main(["demos", "franka_place", "--out", str(tmp_path), "--count", "diverse=0"]) == 2
    assert "no demonstration is asked for" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_runs_that_were_to_come(tmp_path, monkeypatch, number):
    begun = []

    def start(system, arguments):
        begun.append(arguments.styles)
        return 128 + number

    monkeypatch.setattr("bid_ros.commands.demos.start", start)
    assert main(["demos", "franka_place", "--out", str(tmp_path)]) == 128 + number
    assert begun == [("clean",)]


def test_a_demonstration_in_joints_places_the_object(root):
    system = find_system(root / "config" / "joints" / "franka_place")
    stage, arm = system.stage(), system.arm()
    try:
        found = LockstepDemonstrations(system.task, stage, arm).record("clean", 100_000)
    finally:
        stage.close()
    found.validate(system.task)
    joints, tool = found.observations["joint_positions"], found.observations["tool_position"]
    np.testing.assert_allclose(arm.forward(joints)[0], tool, atol=1e-6)  # the measured joints are those of the tool
    cup = episode_scene(100_000, 0.0).cup_start
    assert np.linalg.norm(arm.forward(found.actions[-1, :7])[0][:2] - cup) < 0.005
    assert 0 < np.abs(found.actions[:, :7] - joints).max() < 0.1  # they lag behind the commanded ones


def test_a_task_whose_actions_are_not_recorded_is_refused(task):
    points = Feature("touched", "points", (2,))
    with pytest.raises(RecordingError, match="'touched' of kind 'points' is not recorded"):
        LockstepDemonstrations(replace(task, action=(points, *task.action)), None)
