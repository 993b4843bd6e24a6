from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
import yaml
from onnx import ModelProto
from tiny_bundle import write_manifest
from tiny_vqbet import make_tiny_vqbet

from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation
from bid_ros.learning import export, export_again, train
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.families import bundle_networks
from bid_ros.learning.vqbet.trainer import VqBetTrainer
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.runtimes.engines import sha256_of


def weights(folder: Path, name: str) -> dict[str, torch.Tensor]:
    return torch.load(folder / f"{name}.pt", weights_only=True)["weights"]


def rows_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def run(make_task, make_dataset, make_vqbet, tmp_path_factory):
    """The folder of a short run, and its task; not to be changed."""
    task, folder = make_task(images=False), tmp_path_factory.mktemp("vqbet") / "run"
    train(make_vqbet(steps=20), make_dataset(task), folder, task, progress=False)
    return folder, task


@pytest.mark.parametrize(
    ("reference", "vqbet"),
    [
        pytest.param("tool", {}, id="ours"),
        pytest.param(
            "base",
            {"queries": True, "offset_codes": "drawn", "sequential": False, "head": 0},
            id="published",
            marks=pytest.mark.long,
        ),
    ],
)
def test_small_data_are_learnt(make_task, make_dataset, make_vqbet, tmp_path, reference, vqbet):
    task = make_task(images=False)
    vqbet = vqbet | {"coder_steps": 500}
    config = make_vqbet(
        vqbet, reference, steps=120, batch=16, learning_rate=3e-3, validation_share=0.0, validate_every=120
    )
    train(config, make_dataset(task, episodes=4), tmp_path, task, progress=False)
    coder, first, *_, last = rows_of(tmp_path)
    assert coder["step"] == 0
    assert coder["coder_error"] < 0.5  # of the spread
    assert last["action_error"] < first["action_error"] / 2
    assert last["code_share"] > 0.7


def test_images_are_tokens_too(make_task, make_dataset, make_vqbet, tmp_path):
    task = make_task()
    result = train(make_vqbet(steps=4), make_dataset(task), tmp_path / "run", task, progress=False)
    assert result.val_loss is not None
    bundle = export(tmp_path / "run", tmp_path / "bundle", task)
    assert sorted(bundle.strong) == ["decoder", "encoder", "frames"]
    assert bundle.provenance["difference_to_pytorch"]["strong"]["encoder"] < 1e-4


def test_a_resumed_run_ends_with_the_same_weights(make_task, make_dataset, make_vqbet, tmp_path, monkeypatch):
    task = make_task(images=False)
    dataset, config = make_dataset(task), make_vqbet({"offset_codes": "drawn"}, steps=12, checkpoint_every=4)
    train(config, dataset, tmp_path / "whole", task, progress=False)
    advance = VqBetTrainer.advance

    def dying(self: VqBetTrainer) -> dict[str, float]:
        if self.step == 6:
            raise KeyboardInterrupt
        return advance(self)

    monkeypatch.setattr(VqBetTrainer, "advance", dying)
    with pytest.raises(KeyboardInterrupt):
        train(config, dataset, tmp_path / "cut", task, progress=False)
    monkeypatch.setattr(VqBetTrainer, "advance", advance)
    assert train(config, dataset, tmp_path / "cut", task, progress=False).resumed_from == 4
    for name in ("weak", "strong"):
        whole, cut = weights(tmp_path / "whole", name), weights(tmp_path / "cut", name)
        assert all(torch.equal(whole[key], cut[key]) for key in whole)


def test_the_codes_are_frozen(run):
    weak, strong = (weights(run[0], name) for name in ("weak", "strong"))
    coder = [name for name in strong if name.startswith("net.coder.")]
    assert len(coder) > 10
    assert all(torch.equal(weak[name], strong[name]) for name in coder)
    assert not torch.equal(weak["net.gpt.output.weight"], strong["net.gpt.output.weight"])


def test_chunks_count_from_the_observation_of_their_step(make_task, make_dataset):
    task = make_task(images=False, steps=3, horizon=6)
    dataset, rows = make_dataset(task), np.array([4])
    data = TrainingData(dataset, task, "tool")
    chunks = data.chunks(rows)
    assert chunks.shape == (1, 3, 4, 4)
    # The newest one is the end of the window itself.
    newest = data.batch(rows, torch.device("cpu")).actions[:, 2:]
    np.testing.assert_allclose(chunks[:, -1], newest, atol=1e-6)
    first = data.action.rows(2).denormalise(chunks[0, 0])
    first[:, :3] += dataset.observations["tool_position"][2]
    np.testing.assert_allclose(first, dataset.actions[2:6], atol=1e-6)


def test_a_bundle_samples_what_the_network_predicts(run, tmp_path):
    folder, task = run
    bundle = export(folder, tmp_path / "bundle", task)
    assert (bundle.family, bundle.settings.codes, bundle.settings.temperature) == ("vqbet", 4, 0.5)
    assert bundle.weak is not None
    assert bundle.weak["decoder"] == bundle.strong["decoder"]
    assert bundle.weak["encoder"] != bundle.strong["encoder"]
    policy = load_policy(bundle, task, "onnx")
    encoded = policy.encode(Observation(0, {"tool_position": np.zeros((2, 3))}))
    strong, weak = policy.sample(encoded, 6, 6, np.random.default_rng(0))
    assert np.isfinite(strong).all()
    assert weak is not None
    assert not np.array_equal(strong, weak)


def test_temperature_is_chosen_at_export(run, tmp_path):
    folder, task = run
    cold = export(folder, tmp_path / "cold", task, temperature=0.1)
    warm = export_again(cold, tmp_path / "warm", task, temperature=2.0)
    assert (cold.settings.temperature, warm.settings.temperature) == (0.1, 2.0)
    assert warm.strong["encoder"].read_bytes() == cold.strong["encoder"].read_bytes()
    with pytest.raises(BidError, match="is of the family vqbet; valid is diffusion"):
        bundle_networks(warm, task)
    for change in ({"sampling_steps": 4}, {"temperature": 0.0}):
        with pytest.raises(BidError, match=r"sampling_steps is given for .* vqbet, which has none|temperature is 0"):
            export(folder, tmp_path / "none", task, **change)
    assert not (tmp_path / "none").exists()


def test_a_bundle_from_elsewhere_gets_another_temperature_too(make_task, tmp_path):
    """It has a space, weights, and files that are larger than those of bundles made here."""
    task = make_task(images=False)
    imported = make_tiny_vqbet(tmp_path / "imported", task)
    content = yaml.safe_load((imported.path / "bundle.yaml").read_text())
    space = {"observation": [{"name": "tool_position", "columns": [{"feature": "tool_position"}]}]}
    content |= {"format": 2, "space": space, "action_weights": {"gripper_width": 0.5}}
    with imported.strong["encoder"].open("ab") as file:
        file.write(ModelProto(doc_string="x" * 10_000_000).SerializeToString())  # no graph reads it
    content["files"]["strong_encoder.onnx"] = sha256_of(imported.strong["encoder"])
    write_manifest(imported.path, content)
    before = load_bundle(imported.path, task)
    after = export_again(before, tmp_path / "after", task, temperature=2.0)
    assert (before.settings.temperature, after.settings.temperature) == (0.5, 2.0)
    assert after.space == before.space and after.space is not None
    assert after.action_weights == {"gripper_width": 0.5}
    assert load_policy(after, task, "onnx").runtime == "onnx"


def test_a_weight_that_is_changed_after_training_does_not_fit(run, tmp_path):
    folder, task = copytree(run[0], tmp_path / "run"), run[1]
    state = torch.load(folder / "strong.pt", weights_only=True)
    del state["weights"]["net.gpt.output.weight"]
    torch.save(state, folder / "strong.pt")
    with pytest.raises(BidError, match="does not fit the run's configuration"):
        export(folder, tmp_path / "bundle", task)
