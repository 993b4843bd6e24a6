"""The human demonstrations of Adroit's door."""

import json

import numpy as np
import pytest
from shared_files import shared_file

from bid_ros.bench.door.data import human_dataset
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import load_task


@pytest.fixture
def task(root):
    return load_task(root / "config" / "door.yaml")


def arrays():
    rng = np.random.default_rng(0)
    return {
        "observation": rng.uniform(-1, 1, (9, 39)),
        "action": rng.uniform(-2, 2, (9, 28)),
        "episode_ends": np.array([4, 9]),
    }


def write(path, content):
    np.savez(path, **content)
    return path


def test_rows_are_what_was_seen_and_what_was_answered(tmp_path, task):
    content = arrays()
    dataset = human_dataset(write(tmp_path / "human.npz", content), task)
    assert (dataset.rows, dataset.episodes) == (9, 2)
    np.testing.assert_array_equal(dataset.actions, np.clip(content["action"], -1, 1))
    np.testing.assert_array_equal(dataset.observations["hand"], content["observation"][:, :27])
    np.testing.assert_array_equal(dataset.observations["handle_position"], content["observation"][:, 32:35])
    assert np.diff(dataset.stamps_ns).tolist() == [40_000_000] * 8


def test_the_published_demonstrations(task, tmp_path, capsys):
    human = shared_file("data", "adroit_door", "adroit_door_human.npz")
    out = tmp_path / "door.npz"
    assert main(["bench", "data", str(human), "--task", "door", "--out", str(out)]) == 0
    assert "25 episodes, 6729 rows" in capsys.readouterr().err
    assert main(["data", "info", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 25


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.pop("action"), "lacks 'action'; needed are observation, action, episode_ends"),
        (
            lambda content: content.update(observation=np.zeros((9, 38))),
            r"'observation' is float64 \(9, 38\); valid are numbers in rows of",
        ),
        (lambda content: content["action"].__setitem__((3, 2), np.nan), "not finite"),
        (lambda content: content.update(episode_ends=np.array(9)), r"'episode_ends' is int64 \(\); valid are whole"),
        (
            lambda content: content.update(episode_ends=np.array([3.7, 9.0])),
            "'episode_ends' is float64 .*; valid are whole",
        ),
    ],
)
def test_another_file_is_refused(tmp_path, task, change, said):
    content = arrays()
    change(content)
    with pytest.raises(RecordingError, match=said):
        human_dataset(write(tmp_path / "human.npz", content), task)


def test_a_data_set_of_another_task_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pusht.npz").write_bytes(b"Push-T")
    assert main(["bench", "data", str(write(tmp_path / "human.npz", arrays())), "--task", "door"]) == 0
    assert (tmp_path / "data" / "pusht.npz").read_bytes() == b"Push-T"
    assert (tmp_path / "data" / "door.npz").exists()


def test_a_task_of_another_rate_is_refused(tmp_path, root):
    with pytest.raises(RecordingError, match="door data has 25 rows a second; task 'pusht' has 10"):
        human_dataset(write(tmp_path / "human.npz", arrays()), load_task(root / "config" / "pusht.yaml"))
