"""From a LeRobot data set of any robot to an evaluated policy: ``bid data map``, ``train``, ``evaluate``."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from lerobot_robots import SO101_NEW, Demonstrations, aloha, g1, so101

from bid_ros.cli import main
from bid_ros.core.task import load_task

TRAINING = ["--steps", "2", "--weak-steps", "1", "--batch", "4", "--device", "cpu"]
SMALL = ["--family", "act", "--set", "act.width=16", "act.heads=2", "act.encoder_layers=1", "act.decoder_layers=1"]
EVALUATION = ["--decoder", "vanilla", "--episodes", "1", "--runtime", "onnx", "--json"]
ROBOTS = {"so101": so101, "aloha": aloha, "g1": g1}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A data set of each robot, LeRobot v2.1 or v3.0."""
    folder, versions = tmp_path_factory.mktemp("sets"), ("lerobot_v30", "lerobot_v21", "lerobot_v30")
    return {
        name: str(made().write(folder / name, version))
        for (name, made), version in zip(ROBOTS.items(), versions, strict=True)
    }


def mapping(source, tmp_path, capsys, *options):
    out = tmp_path / "task.yaml"
    assert main(["data", "map", source, "--out", str(out), *options]) == 0
    return str(out), capsys.readouterr()


@pytest.mark.parametrize(
    ("robot", "features", "dimension", "left"),
    [("so101", 3, 6, 0), ("aloha", 3, 14, 1), ("g1", 2, 28, 0)],  # ALOHA's is not trained: it would show no more
)
def test_one_file_maps_trains_and_evaluates(sets, robot, features, dimension, left, tmp_path, capsys):
    file, said = mapping(sets[robot], tmp_path, capsys, "--json")
    report = json.loads(said.out)
    assert len([each for each in report["features"] if each["group"] == "observation"]) == features
    assert len(report["undecided"]) == left
    assert main(["data", "info", sets[robot], "--task", file, "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["task"] == robot and about["action"]["shape"] == [dimension] and not about["damage"]
    if robot == "aloha":
        return
    run, bundle, out = (str(tmp_path / name) for name in ("run", "bundle", "evaluation"))
    assert main(["train", sets[robot], "--task", file, "--out", run, *TRAINING, *SMALL]) == 0
    assert main(["policy", "export", run, "--task", file, "--out", bundle]) == 0
    capsys.readouterr()
    assert main(["evaluate", file, sets[robot], "--bundle", bundle, "--out", out, *EVALUATION]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == robot and found["decisions"] == 24


def test_nothing_moves_for_a_task_of_no_robot(sets, tmp_path, capsys, root):
    file, _ = mapping(sets["so101"], tmp_path, capsys)
    system = tmp_path / "cell"
    system.mkdir()
    shutil.copy(file, system / "task.yaml")
    for name in ("robot.yaml", "cameras.yaml", "nodes.yaml", "system.yaml"):
        shutil.copy(root / "config" / "franka_place" / name, system / name)
    for verb in ("up", "rehearse"):
        for named in (file, str(system)):
            out = str(tmp_path / "out")
            assert main([verb, named, "--out", out]) == 2, verb
            error = capsys.readouterr().err
            assert "task 'so101' is of no robot (robot: none), so no arm and no twin moves for it" in error
            assert error.startswith("error: ") and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_bad_input_is_one_sentence_and_nothing_is_written(sets, tmp_path, capsys):
    (tmp_path / "task.yaml").write_text("mine")
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, said in (
        ([sets["g1"]], "task.yaml exists; name another file with --out"),
        ([str(empty), "x"], "is no data set that is known; valid formats are"),
        ([str(tmp_path / "none"), "x"], "none does not exist"),
    ):
        source, *out = arguments
        assert main(["data", "map", source, "--out", str(tmp_path / (out or ["task.yaml"])[0])]) == 2
        error = capsys.readouterr().err
        assert said in error and error.startswith("error: ") and error.count("\n") == 1
    assert (tmp_path / "task.yaml").read_text() == "mine" and not (tmp_path / "x").exists()


def changed(file, tmp_path, **sections):
    """The proposed file with other keys or units."""
    content = yaml.safe_load((tmp_path / file).read_text())
    for name, values in sections.items():
        content["data"].setdefault(name, {}).update(values)
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump(content))
    return str(tmp_path / "changed.yaml")


def test_a_bad_mapping_is_one_sentence_and_nothing_is_trained(sets, tmp_path, capsys):
    file, _ = mapping(sets["so101"], tmp_path, capsys)
    for changes, said in (
        (
            {"observation": {"main_gripper": "observation.state[2]"}},
            "observation 'main_gripper' and 'joints' are both value 2 of 'observation.state' of the data set",
        ),
        ({"action": {"main_gripper": "action[0]"}}, "action 'main_gripper' and 'joints' are both value 0 of 'action'"),
        ({"unit": {"joints": "gon"}}, "unit of 'joints' is 'gon'; valid for joints are rad, deg, percent"),
    ):
        task = changed(file, tmp_path, **changes)
        assert main(["train", sets["so101"], "--task", task, "--out", str(tmp_path / "run"), *TRAINING, *SMALL]) == 2
        error = capsys.readouterr().err
        assert said in error and error.startswith("error: ") and error.count("\n") == 1
    content = yaml.safe_load((tmp_path / "task.yaml").read_text())
    content["observation"] = [each for each in content["observation"] if each["name"] != "joints"]
    del content["data"]["observation"]["joints"]
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump(content))
    arguments = ["--task", str(tmp_path / "changed.yaml"), "--out", str(tmp_path / "run"), *TRAINING, *SMALL]
    assert main(["train", sets["so101"], *arguments]) == 2
    assert "action_reference is 'tool', but task 'so101' commands no position or joints" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_unit_that_is_left_open_is_asked_for_before_training(tmp_path, capsys):
    source = str(Demonstrations(SO101_NEW, [(-61.0, 72.5)] * 5 + [(0.6, 97.5)]).write(tmp_path / "set"))
    file, said = mapping(source, tmp_path, capsys)
    assert "undecided: unit of 'joints'" in said.err
    train = ["train", source, "--out", str(tmp_path / "run"), *TRAINING, *SMALL, "--task"]
    assert main([*train, file]) == 2
    assert "'joints' reaches 72.5; joints are in rad, at most 2 pi: name its unit" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    for unit in ("deg", "percent"):
        task = load_task(changed(file, tmp_path, unit={"joints": unit}))
        assert task.data is not None and task.data.unit["joints"] == unit
    content = yaml.safe_load((tmp_path / "changed.yaml").read_text()) | {"robot": "ur"}
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump(content))
    assert main([*train, str(tmp_path / "changed.yaml")]) == 2
    assert "percent of their range, which is no angle, with robot: none" in capsys.readouterr().err
