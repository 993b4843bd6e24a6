import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from full_disk import full_disk

from bid_ros.core.errors import BidError, RecordingError
from bid_ros.core.feature import Feature
from bid_ros.learning import AugmentConfig, train
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.run_folder import RunFolder
from bid_ros.learning.trainer import DiffusionTrainer


def weights(folder: Path, name: str) -> dict[str, torch.Tensor]:
    return torch.load(folder / f"{name}.pt", weights_only=True)["weights"]


def test_small_data_is_learnt_by_heart(make_task, make_dataset, make_config, tmp_path) -> None:
    task = make_task()
    still = AugmentConfig(brightness=0, contrast=0, noise=0)
    # In 120 steps the loss fell to a seventh or less with three seeds, and the goal's to less than a hundredth.
    config = make_config(
        steps=120, batch=16, learning_rate=3e-3, validation_share=0.0, augment=still, validate_every=120
    )
    result = train(config, make_dataset(task, episodes=4), tmp_path, task, progress=False)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    first, last = rows[0], rows[-1]
    assert last["loss"] < first["loss"] / 4
    assert last["goal_loss"] < first["goal_loss"] / 10
    assert result.val_loss is None
    assert result.steps == last["step"] == 120


def test_a_task_without_images_is_trained_too(make_task, make_dataset, make_config, tmp_path) -> None:
    task = make_task(images=False)
    result = train(make_config(), make_dataset(task), tmp_path, task, progress=False)
    assert result.val_loss is not None
    assert result.val_goal_mm is None


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """The folder of a complete run, which a test may change."""
    return copytree(trained, tmp_path / "run")


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupt(monkeypatch):
    """Make training die in the middle of a step, as a power cut would."""

    def at(step: int) -> None:
        advance = DiffusionTrainer.advance

        def dying(self: DiffusionTrainer) -> dict[str, float]:
            if self.step == step:
                monkeypatch.setattr(DiffusionTrainer, "advance", advance)
                raise Interrupted
            return advance(self)

        monkeypatch.setattr(DiffusionTrainer, "advance", dying)

    return at


def test_a_resumed_run_ends_with_the_same_weights(task, dataset, make_config, trained, tmp_path, interrupt) -> None:
    config = make_config()
    interrupt(10)
    with pytest.raises(Interrupted):
        train(config, dataset, tmp_path / "cut", task, progress=False)
    assert not (tmp_path / "cut" / "strong.pt").exists()
    result = train(config, dataset, tmp_path / "cut", task, progress=False)
    assert result.resumed_from == 8
    for name in ("weak", "strong"):
        whole, cut = weights(trained, name), weights(tmp_path / "cut", name)
        assert all(torch.equal(whole[key], cut[key]) for key in whole)
    steps = [json.loads(line)["step"] for line in (tmp_path / "cut" / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps.count(9) == 1


def test_a_complete_run_is_left_as_it_is(task, dataset, make_config, run) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    again = train(make_config(), dataset, run, task, progress=False)
    assert again.resumed_from == 12
    losses = [row["val_loss"] for row in map(json.loads, before["log.jsonl"].splitlines()) if "val_loss" in row]
    assert again.val_loss == losses[-1] != losses[0]
    assert again.val_goal_mm is not None
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert set(before) == {"run.json", "checkpoint.pt", "weak.pt", "strong.pt", "log.jsonl", "loss.png"}


def test_weak_and_strong_differ_and_validation_is_logged(trained) -> None:
    weak, strong = weights(trained, "weak"), weights(trained, "strong")
    assert any(not torch.equal(weak[key], strong[key]) for key in weak)
    rows = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "val_loss" in row] == [6, 12]
    assert len(json.loads((trained / "run.json").read_text())["held_out_episodes"]) == 1


def test_another_configuration_or_data_is_refused(task, dataset, make_dataset, make_config, run) -> None:
    before = (run / "strong.pt").read_bytes()
    with pytest.raises(BidError, match="holds a run with seed 0, not 1; resume with the same configuration"):
        train(make_config(seed=1), dataset, run, task, progress=False)
    with pytest.raises(BidError, match=r"holds a run with augment.shift 1, not 2; resume"):
        train(make_config(augment=AugmentConfig(shift=2)), dataset, run, task, progress=False)
    with pytest.raises(BidError, match="holds a run with another data sha256"):
        train(make_config(), make_dataset(task, seed=5), run, task, progress=False)
    assert (run / "strong.pt").read_bytes() == before


def test_a_run_of_an_older_version_is_resumed(task, dataset, make_config, run) -> None:
    """It did not write the fields that came later; their defaults are what it did."""
    content = json.loads((run / "run.json").read_text())
    del content["config"]["family"], content["config"]["vqbet"], content["config"]["diffusion"]["kept_noise"]
    (run / "run.json").write_text(json.dumps(content))
    assert train(make_config(), dataset, run, task, progress=False).resumed_from == 12
    with pytest.raises(BidError, match="holds a run with family diffusion, not vqbet; resume with the same"):
        train(make_config(family="vqbet"), dataset, run, task, progress=False)


def test_a_full_disk_is_said_and_the_checkpoint_before_is_kept(tmp_path) -> None:
    """PyTorch itself raises a RuntimeError about a position in a file."""
    folder = RunFolder(tmp_path)
    folder.save("checkpoint", {"step": 1})
    with full_disk(10_000), pytest.raises(OSError, match=r"File too large: '.*checkpoint\.pt'"):
        folder.save("checkpoint", {"weights": torch.zeros(100_000)})
    assert folder.load("checkpoint") == {"step": 1}


def test_a_damaged_checkpoint_is_named(task, dataset, make_config, run) -> None:
    (run / "checkpoint.pt").write_bytes(b"nothing")
    with pytest.raises(BidError, match=r"checkpoint\.pt is damaged, remove it"):
        train(make_config(), dataset, run, task, progress=False)
    (run / "run.json").write_text("{")
    with pytest.raises(BidError, match=r"run\.json cannot be read as that of a training run: "):
        train(make_config(), dataset, run, task, progress=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: replace(d, observations={"front": d.observations["front"]}), "lacks observation 'tool_position'"),
        (lambda d: replace(d, actions=np.where(np.arange(len(d.actions))[:, None] == 7, np.nan, d.actions)), "row 7"),
        (lambda d: replace(d, actions=d.actions[:, :3]), "has actions"),
        (lambda d: replace(d, observations=d.observations | {"front": d.observations["front"][:, :8]}), "'front' as"),
        (
            lambda d: replace(d, episode_ends=np.append(1, d.episode_ends[1:])),
            "episode 0 of the data set has 1 rows; valid is at least observation_steps 2",
        ),
        (lambda d: replace(d, task_signature="other"), "made for task 'dot' with other features"),
        (
            lambda d: replace(d, truncated=np.ones(6, bool), episode_ends=d.episode_ends),
            "every episode is cut off early",
        ),
    ],
)
def test_data_that_cannot_train_is_refused(make_task, make_dataset, make_config, tmp_path, change, message) -> None:
    task = make_task(horizon=16)
    with pytest.raises(RecordingError, match=message):
        train(make_config(), change(make_dataset(task)), tmp_path / "run", task, progress=False)
    assert not (tmp_path / "run").exists()


def test_a_missing_data_set_file_is_named(task, make_config, tmp_path) -> None:
    with pytest.raises(RecordingError, match=r"no\.npz does not exist"):
        train(make_config(), tmp_path / "no.npz", tmp_path / "run", task, progress=False)


def test_a_data_set_file_is_read(task, dataset, make_config, tmp_path) -> None:
    dataset.save(tmp_path / "data.npz")
    train(make_config(steps=2), tmp_path / "data.npz", tmp_path / "run", task)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["data_sha256"] == dataset.sha256


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said(task, dataset, make_config, tmp_path) -> None:
    with pytest.raises(BidError, match="no GPU here; valid here are auto, cpu"):
        train(make_config(device="cuda"), dataset, tmp_path, task, progress=False)


def test_training_that_diverges_stops(task, dataset, make_config, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(DiffusionTrainer, "learning_rate", 1e30)
    with pytest.raises(BidError, match="training diverged at step"):
        train(make_config(), dataset, tmp_path, task, progress=False)


def test_positions_counted_from_the_tool_are_relative_to_the_current_row(task, dataset) -> None:
    data = TrainingData(dataset, task, "tool")
    batch = data.batch(np.array([14]), torch.device("cpu"))
    # Window 14 is row 14 as the current one; its first row, 13, is the observation step before it.
    now = dataset.observations["tool_position"][14]
    expected = dataset.actions[13:21] - np.append(now, 0.0)
    assert data.action.minimum.shape == (8, 4)
    np.testing.assert_allclose(data.action.denormalise(batch.actions[0].numpy()), expected, atol=1e-6)
    assert batch.goals is not None
    assert data.goal is not None
    goal = data.goal.denormalise(batch.goals[0].numpy()) + now
    np.testing.assert_allclose(goal, dataset.actions[12 + 9, :3], atol=1e-6)


def test_batches_hold_what_the_rows_say(task, dataset) -> None:
    data = TrainingData(dataset, task)
    batch = data.batch(np.array([0, 13]), torch.device("cpu"))
    assert batch.images["front"].shape == (2, 2, 24, 24, 3)
    expected = dataset.observations["front"][[12, 13]].astype(np.float32) / 255 - 0.5
    np.testing.assert_allclose(batch.images["front"][1], expected, atol=1e-6)
    np.testing.assert_allclose(data.action.denormalise(batch.actions[1].numpy()), dataset.actions[12:20], atol=1e-6)
    vector = data.observation["tool_position"].denormalise(batch.vectors["tool_position"][0].numpy())
    np.testing.assert_allclose(vector, dataset.observations["tool_position"][[0, 0]], atol=1e-6)
    assert batch.goals is not None
    # The first row whose width is open, 9 of 12.
    assert data.goal is not None
    goal = data.goal.denormalise(batch.goals[1].numpy())
    np.testing.assert_allclose(goal, dataset.actions[12 + 9, :3], atol=1e-6)


def test_history_is_dropped_only_while_training_and_from_all_features_alike(task, dataset) -> None:
    data, windows = TrainingData(dataset, task), np.arange(13, 23)
    augment = AugmentConfig(brightness=0, contrast=0, noise=0, history=0.5)
    plain, dropped = (data.batch(windows, torch.device("cpu"), how, seed=3) for how in (None, augment))
    forgot = (dropped.images["front"][:, 0] == dropped.images["front"][:, 1]).flatten(1).all(dim=1)
    assert 0 < forgot.sum() < len(windows)
    for name in ("images", "vectors"):
        for feature, values in getattr(dropped, name).items():
            expected = getattr(plain, name)[feature].clone()
            expected[forgot, 0] = expected[forgot, 1]
            torch.testing.assert_close(values, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(dropped.actions, plain.actions)


def test_angles_are_offset_by_their_own_unit_and_positions_are_not(make_task, make_dataset) -> None:
    task = make_task()
    rotation = Feature("tool_rotation", "rotation_6d", frame="base")
    task = replace(task, observation=(*task.observation, rotation), data=None)
    dataset = make_dataset(make_task())
    down = np.tile([1.0, 0, 0, 0, -1, 0], (dataset.rows, 1))
    seen = {**dataset.observations, "tool_rotation": down}
    dataset = replace(dataset, observations=seen, task_signature=task.signature())
    data, windows = TrainingData(dataset, task), np.arange(dataset.rows // 2)
    augment = AugmentConfig(brightness=0, contrast=0, noise=0, angles=0.1)
    plain, moved = (data.batch(windows, torch.device("cpu"), how, seed=3).vectors for how in (None, augment))
    torch.testing.assert_close(moved["tool_position"], plain["tool_position"])
    offset = (moved["tool_rotation"] - plain["tool_rotation"]).numpy()  # its entries are normalised as they are
    assert offset.std() == pytest.approx(0.1, rel=0.3)
