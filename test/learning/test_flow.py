"""Training of a flow-matching policy: it learns velocities, and its bundle follows them from noise to chunks."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from bid_ros.cli import main
from bid_ros.core.observation import Observation
from bid_ros.learning import AugmentConfig, export, train
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.run_folder import RunFolder
from bid_ros.learning.trainer import DiffusionTrainer
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig, noise_levels
from bid_ros.policy.registry import load_policy
from bid_ros.recording.dataset import Dataset

FLOW = DiffusionConfig(sampler="flow", prediction="velocity", sampling_steps=10)
STILL = AugmentConfig(brightness=0, contrast=0, noise=0)


@pytest.fixture
def forked(make_task):
    """A task without images, and demonstrations that go left or right from the same place."""
    task = make_task(images=False)
    rows, sides = 12, (-0.3, 0.3) * 4
    share = np.arange(rows + 1) / rows
    paths = [np.stack([share * side, share * 0.1, share * -0.2], axis=1) for side in sides]
    width = np.full((rows, 1), 0.02)
    return task, Dataset(
        observations={"tool_position": np.concatenate([path[:-1] for path in paths])},
        actions=np.concatenate([np.hstack([path[1:], width]) for path in paths]),
        stamps_ns=np.arange(rows * len(sides), dtype=np.int64) * 100_000_000,
        episode_ends=np.arange(rows, rows * len(sides) + 1, rows, dtype=np.int64),
        labels=("clean",) * len(sides),
        seeds=np.arange(len(sides), dtype=np.uint64),
        task=task.name,
        task_signature=task.signature(),
    )


def test_the_target_is_the_velocity_of_a_straight_path(forked, make_config):
    task, dataset = forked
    config = make_config(diffusion=FLOW)
    data = TrainingData(dataset, task, config.action_reference)
    windows = np.arange(len(data))
    trainer = DiffusionTrainer(task, data, windows, windows[:0], config, torch.device("cpu"))
    seen = {}

    def losses(batch, noisy, level, target, prefix_rows):
        seen.update(clean=batch.actions, noisy=noisy, level=level, target=target)
        return {"loss": torch.zeros(())}

    trainer.networks.losses = losses
    batch = data.batch(windows[:4], torch.device("cpu"))
    trainer._losses(trainer.networks, batch, 3)
    time = seen["level"][:, None, None] / FLOW.train_steps
    noise = seen["clean"] - seen["target"]
    assert 0.5 < float(noise.std()) < 1.5
    torch.testing.assert_close(seen["noisy"], time * seen["clean"] + (1 - time) * noise)


def test_levels_run_from_noise_to_chunk():
    signal, noise = noise_levels(FLOW)
    assert (signal[0], noise[0]) == (0.0, 1.0) and signal[-1] == pytest.approx(0.99)
    np.testing.assert_allclose(signal + noise, 1.0)


@pytest.mark.long
def test_a_trained_flow_takes_both_ways_of_a_fork(forked, make_config, tmp_path):
    task, dataset = forked
    config = make_config(
        steps=500, batch=32, learning_rate=3e-3, validation_share=0.0, augment=STILL, validate_every=500, diffusion=FLOW
    )
    train(config, dataset, tmp_path / "run", task, progress=False)
    bundle = export(tmp_path / "run", tmp_path / "bundle", task)
    assert bundle.settings.sampler == "flow" and bundle.settings.prediction == "velocity"
    policy = load_policy(bundle, task, "onnx")
    encoded = policy.encode(Observation(0, {"tool_position": np.zeros((2, 3))}))
    strong, weak = policy.sample(encoded, 64, 8, np.random.default_rng(0))
    ends = strong[:, -1, 0]
    wanted = 0.3 * 7 / 12  # of the last row of a window that begins at the fork
    near = np.minimum(np.abs(ends - wanted), np.abs(ends + wanted)) < 0.06
    assert near.mean() > 0.8, np.sort(ends).round(2)
    assert 0.2 < (ends > 0).mean() < 0.8
    assert weak.shape == (8, task.horizon, task.action_dim)


def test_the_command_line_trains_a_flow(task, task_file, dataset, tmp_path, capsys):
    dataset.save(tmp_path / "data.npz")
    arguments = ["train", str(tmp_path / "data.npz"), "--task", str(task_file), "--family", "flow", "--steps", "2"]
    small = ["--set", "network.widths=[16,32]", "network.condition=32", "--out", str(tmp_path / "run")]
    assert main([*arguments, *small, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2
    assert RunFolder(tmp_path / "run").config().diffusion == replace(FLOW, sampling_steps=5)
    out = ["--task", str(task_file), "--out", str(tmp_path / "bundle"), "--sampling-steps", "2"]
    assert main(["policy", "export", str(tmp_path / "run"), *out]) == 0
    assert load_bundle(tmp_path / "bundle", task).settings == replace(FLOW, sampling_steps=2)
    assert main([*arguments, "--set", "diffusion.prediction=epsilon"]) == 2
    assert "diffusion.prediction is for --family diffusion; a flow learns velocities" in capsys.readouterr().err
