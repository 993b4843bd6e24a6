"""``bid data``, and ``bid train`` on data sets of other formats."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import yaml
from small_task import SMALL

from bid_ros.cli import main
from bid_ros.core.task import load_task
from bid_ros.recording.dataset import Dataset

TASK = {
    **SMALL,
    "observation": [
        {"name": "wrist", "kind": "image", "shape": [16, 16, 3]},
        {"name": "tool_position", "kind": "position"},
        {"name": "tool_rotation", "kind": "rotation_6d"},
    ],
    "action": [{"name": "tool_position", "kind": "position"}, {"name": "tool_rotation", "kind": "rotation_6d"}],
}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK))
    return str(tmp_path / "task.yaml")


@pytest.fixture
def dataset(file, tmp_path):
    task, rng = load_task(file), np.random.default_rng(0)
    rows = 24
    turn = np.tile([1.0, 0, 0, 0, -1.0, 0], (rows, 1))
    place = np.cumsum(rng.normal(scale=0.01, size=(rows, 3)), axis=0)
    made = Dataset(
        observations={
            "wrist": rng.integers(0, 256, (rows, 16, 16, 3), np.uint8),
            "tool_position": place,
            "tool_rotation": turn,
        },
        actions=np.concatenate([place, turn], axis=1),
        stamps_ns=np.arange(rows, dtype=np.int64) * task.dt_ns,
        episode_ends=np.array([12, 24]),
        labels=("clean", "clean"),
        seeds=np.array([1, 2], dtype=np.uint64),
        task=task.name,
        task_signature=task.signature(),
    )
    made.save(tmp_path / "set.npz")
    return made


def test_there_and_back_is_the_same_data_set(dataset, file, tmp_path, capsys):
    there, back = str(tmp_path / "there"), str(tmp_path / "back.npz")
    assert (
        main(
            [
                "data",
                "convert",
                str(tmp_path / "set.npz"),
                there,
                "--to",
                "lerobot_v30",
                "--images",
                "png",
                "--task",
                file,
            ]
        )
        == 0
    )
    assert "lerobot_v30, 2 episodes, 24 rows" in capsys.readouterr().err
    assert main(["data", "convert", there, back, "--to", "npz", "--task", file, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["episodes"], report["rows"], report["resumed"]) == ("npz", 2, 24, 0)
    assert report["lost"] == ["the text of the task of each episode is not held"]
    assert Dataset.load(back).sha256 == dataset.sha256


def test_info_says_what_is_there_and_what_would_be_lost(dataset, file, tmp_path, capsys):
    assert main(["data", "info", str(tmp_path / "set.npz"), "--task", file]) == 0
    shown = capsys.readouterr().out
    assert "set.npz: npz, 2 episodes, 24 rows, 10 Hz, task small" in shown
    assert "| tool_rotation | tool_rotation | (6,) | float64 | tool_rotation.0, tool_rotation.1" in shown
    assert "to zarr: nothing is lost" in shown
    assert "to lerobot_v30: the images of 'wrist' are coded with loss (H.264); --images png keeps them exact" in shown
    assert main(["data", "info", str(tmp_path / "set.npz"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["episodes"], report["rows"], report["rate_hz"]) == ("npz", 2, 24, None)
    assert "LeRobot needs the rate of the rows" in report["lost"]["lerobot_v30"][0]


def test_bad_input_is_one_sentence(dataset, file, tmp_path, capsys):
    source = str(tmp_path / "set.npz")
    for arguments, said in (
        (["convert", source, str(tmp_path / "x"), "--to", "tfds"], "data format 'tfds' does not exist; valid are"),
        (["convert", source, source, "--to", "npz", "--task", file], "exists; name another target"),
        (
            ["convert", source, str(tmp_path / "x"), "--to", "zarr", "--images", "gif"],
            "--images is 'gif'; valid are png, video",
        ),
        (["info", str(tmp_path / "none")], "none does not exist"),
        (["info", source, "--from", "zarr"], "set.npz is damaged or of another kind"),
    ):
        assert main(["data", *arguments]) == 2
        error = capsys.readouterr().err
        assert said in error and error.startswith("error: ") and error.count("\n") == 1


def test_training_takes_any_format(dataset, file, tmp_path, capsys):
    source, path = str(tmp_path / "set.npz"), str(tmp_path / "set")
    convert = ["data", "convert", source, path, "--to", "lerobot_v21", "--images", "png", "--task", file]
    assert main(convert) == 0
    small = [
        "--steps",
        "2",
        "--weak-steps",
        "1",
        "--batch",
        "4",
        "--set",
        "network.widths=[8,16]",
        "network.condition=16",
    ]
    runs = []
    for number, data in enumerate((source, path)):
        out = tmp_path / f"run{number}"
        assert main(["train", data, "--task", file, "--out", str(out), "--device", "cpu", *small]) == 0
        runs.append(json.loads((out / "run.json").read_text()))
    assert runs[0]["data_sha256"] == runs[1]["data_sha256"] == dataset.sha256


def test_training_says_which_task_is_missing(dataset, file, tmp_path, capsys):
    path = tmp_path / "set.hdf5"
    assert main(["data", "convert", str(tmp_path / "set.npz"), str(path), "--to", "robomimic", "--task", file]) == 0
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "is of the task 'small'" in capsys.readouterr().err
    import h5py

    with h5py.File(path, "a") as stored:
        del stored["data"].attrs["bid_ros"]
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "does not say which task its data are of; give the task file with --task" in capsys.readouterr().err


def test_a_shipped_task_is_taken_from_the_data(root, tmp_path, capsys):
    task = load_task(root / "config" / "pusht.yaml")
    made = Dataset(
        observations={item.name: np.ones((4, *item.shape)) for item in task.observation},
        actions=np.ones((4, 2)),
        stamps_ns=np.arange(4, dtype=np.int64) * task.dt_ns,
        episode_ends=np.array([4]),
        labels=("human",),
        seeds=np.array([0], dtype=np.uint64),
        task="pusht",
        task_signature=task.signature(),
    )
    made.save(tmp_path / "set.npz")
    assert main(["data", "convert", str(tmp_path / "set.npz"), str(tmp_path / "out"), "--to", "lerobot_v30"]) == 0
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())
    assert info["features"]["action"]["names"] == ["agent_position.0", "agent_position.1"]
    shutil.rmtree(tmp_path / "out")
