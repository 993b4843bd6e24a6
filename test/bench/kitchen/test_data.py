"""The public demonstrations of Franka Kitchen: logs and arrays of the same layout, made here."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from bid_ros.bench.kitchen.data import ACTIONS, MASK, OBSERVATIONS, human_dataset
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import load_task

ROWS = (4, 3)  # of the two episodes


@pytest.fixture
def task(root):
    return load_task(root / "config" / "kitchen.yaml")


def log(path, rows, positions=30, controls=9, cut=0):
    """Write a log of ``40 rows`` steps of the simulator: position j of step i is ``(i / 40 + j) / 100``."""
    steps = np.arange(40 * (rows - 1) + 1, dtype=np.float32)[:, None] / 40
    qpos = (steps + np.arange(positions, dtype=np.float32)) / 100
    ctrl = 1 + (steps + np.arange(controls, dtype=np.float32)) / 100
    users = np.zeros((len(steps), 5), np.float32)
    content = np.hstack([steps * 0.08, qpos, qpos[:, 1:], ctrl, np.zeros((len(steps), 7), np.float32), users])
    header = struct.pack("<7i", positions, positions - 1, controls, 1, 2, 3, 4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((header + b"name" + content.astype("<f4").tobytes())[: -cut or None])


def logs(folder, **settings):
    for number, rows in enumerate(ROWS):
        log(folder / "friday_microwave_kettle" / f"demo_{number}.mjl", rows, **settings)
    return folder


def arrays(folder, time_first=True, change=lambda content: None):
    """Write the three arrays of two episodes, 5 steps long at most."""
    rng = np.random.default_rng(0)
    content = {
        OBSERVATIONS: rng.uniform(-1, 1, (5, 2, 60)).astype(np.float32),
        ACTIONS: rng.uniform(-1.5, 1.5, (5, 2, 9)).astype(np.float32),
        MASK: (np.arange(5)[:, None] < np.array(ROWS)).astype(np.float32),
    }
    change(content)
    for name, values in content.items():
        np.save(folder / name, values if time_first else values.swapaxes(0, 1))
    return content


def test_a_log_is_read_every_40_steps_and_its_controls_are_the_actions(tmp_path, task):
    dataset = human_dataset(logs(tmp_path), task)
    assert (dataset.rows, dataset.episodes, dataset.labels) == (7, 2, ("human", "human"))
    assert dataset.episode_ends.tolist() == [4, 7]
    np.testing.assert_allclose(dataset.observations["arm"][2], (2 + np.arange(7)) / 100, atol=1e-6)
    np.testing.assert_allclose(dataset.observations["fixtures"][2], (2 + np.arange(9, 23)) / 100, atol=1e-6)
    np.testing.assert_allclose(dataset.observations["kettle_position"][5], (1 + np.arange(23, 26)) / 100, atol=1e-6)
    np.testing.assert_allclose(dataset.observations["kettle_quaternion"][4], np.arange(26, 30) / 100, atol=1e-6)
    np.testing.assert_allclose(dataset.actions[6], 1 + (2 + np.arange(9)) / 100, atol=1e-6)
    assert np.diff(dataset.stamps_ns[:4]).tolist() == [80_000_000] * 3


def test_a_log_with_a_second_arm_between_arm_and_kitchen(tmp_path, task):
    """Some logs hold the arm's picture of what is wanted: the kitchen has the last values."""
    dataset = human_dataset(logs(tmp_path, positions=39), task)
    np.testing.assert_allclose(dataset.observations["arm"][0], np.arange(7) / 100, atol=1e-6)
    np.testing.assert_allclose(dataset.observations["fixtures"][0], np.arange(18, 32) / 100, atol=1e-6)


@pytest.mark.parametrize("time_first", [True, False])
def test_arrays_hold_velocities_that_become_targets(tmp_path, task, time_first):
    content = arrays(tmp_path, time_first)
    dataset = human_dataset(tmp_path, task)
    assert dataset.episode_ends.tolist() == [4, 7]
    shown = content[OBSERVATIONS][2, 1, :30]
    np.testing.assert_allclose(dataset.observations["arm"][6], shown[:7])
    np.testing.assert_allclose(dataset.observations["fingers"][6], shown[7:9])
    np.testing.assert_allclose(dataset.observations["kettle_quaternion"][6], shown[26:])
    targets = shown[:9] + 0.16 * np.clip(content[ACTIONS][2, 1], -1, 1)
    np.testing.assert_allclose(dataset.actions[6], targets, atol=1e-6)


def test_one_command_makes_the_data_set_that_training_takes(tmp_path, capsys):
    folder, out = logs(tmp_path / "kitchen_demos_multitask"), tmp_path / "kitchen.npz"
    assert main(["bench", "data", str(folder), "--task", "kitchen", "--out", str(out)]) == 0
    assert "2 episodes, 7 rows" in capsys.readouterr().err
    assert main(["data", "info", str(out), "--task", "kitchen", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"positions": 29}, "a row has 29 positions and 9 controls; valid are at least 30 and 9"),
        ({"controls": 7}, "a row has 30 positions and 7 controls"),
        ({"cut": 3}, "is damaged: it ends within a row"),
    ],
)
def test_another_log_is_refused(tmp_path, task, settings, said):
    with pytest.raises(RecordingError, match=said):
        human_dataset(logs(tmp_path, **settings), task)


def test_a_log_that_is_no_more_than_a_beginning_is_refused(tmp_path, task):
    (tmp_path / "demo.mjl").write_bytes(b"short")
    with pytest.raises(RecordingError, match=r"demo.mjl is damaged: it has 5 bytes"):
        human_dataset(tmp_path, task)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.update({ACTIONS: np.zeros((5, 2, 8))}), r"actions_seq.npy \(5, 2, 8\); valid are"),
        (lambda content: content.update({OBSERVATIONS: np.zeros((5, 2, 29))}), r"observations_seq.npy is \(5, 2, 29\)"),
        (lambda content: content.update({MASK: np.ones((5, 3))}), r"existence_mask.npy is \(5, 3\); valid is \(5, 2\)"),
        (lambda content: content[MASK].__setitem__((1, 0), 0), "existence_mask.npy has gaps"),
        (lambda content: content[ACTIONS].__setitem__((1, 0, 3), np.nan), "not finite"),
        (lambda content: content.update({name: content[name][:, :0] for name in content}), "there is no episode"),
        (lambda content: content.update({name: content[name][:0] for name in content}), r"episode_ends is \[0, 0\]"),
    ],
)
def test_other_arrays_are_refused(tmp_path, task, change, said):
    arrays(tmp_path, change=change)
    with pytest.raises(RecordingError, match=said) as raised:
        human_dataset(tmp_path, task)
    assert "\n" not in str(raised.value) and str(tmp_path) in str(raised.value)


def test_a_damaged_array_is_refused(tmp_path, task):
    arrays(tmp_path)
    (tmp_path / MASK).write_bytes(b"no array")
    with pytest.raises(RecordingError, match=r"existence_mask.npy is damaged or of another kind"):
        human_dataset(tmp_path, task)


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_folder_without_demonstrations(tmp_path, task, name):
    with pytest.raises(RecordingError, match=r"no folder with logs \(\*.mjl\) or with observations_seq.npy"):
        human_dataset(tmp_path / name, task)


def test_a_task_of_another_rate_is_refused(tmp_path, root):
    with pytest.raises(RecordingError, match=r"kitchen data has 12.5 rows a second; task 'pusht' has 10"):
        human_dataset(logs(tmp_path), load_task(root / "config" / "pusht.yaml"))
