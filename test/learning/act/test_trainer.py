"""ACT is trained, resumed and exported, and several runs make the candidates of one bundle."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation
from bid_ros.learning import export, train
from bid_ros.learning.config import ActConfig
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy

SMALL = ActConfig(width=16, heads=2, hidden=32, encoder_layers=1, decoder_layers=1, latent=4)


@pytest.fixture(scope="module")
def runs(make_task, make_dataset, make_config, tmp_path_factory):
    """The folders of two short runs that differ in their seeds, their task and its data; not to be changed."""
    task, folder = make_task(), tmp_path_factory.mktemp("act")
    dataset = make_dataset(task)
    for seed in (0, 1):
        config = make_config(family="act", act=SMALL, steps=4, seed=seed, validation_share=0.0)
        train(config, dataset, folder / str(seed), task, progress=False)
    return folder / "0", folder / "1", task, dataset


def test_small_data_are_learnt(make_task, make_dataset, make_config, tmp_path):
    task = make_task(images=False)
    config = make_config(
        family="act", act=SMALL, steps=150, batch=16, learning_rate=5e-3, validation_share=0.0, validate_every=150
    )
    train(config, make_dataset(task, episodes=4), tmp_path, task, progress=False)
    first, *_, last = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert last["loss"] < first["loss"] / 2
    assert (tmp_path / "loss.png").exists()


def test_a_resumed_run_ends_with_the_same_weights(runs, make_config, tmp_path):
    whole, _, task, dataset = runs
    each = {"checkpoint_every": 2, "validate_every": 3}
    config = make_config(family="act", act=SMALL, steps=4, validation_share=0.0, **each)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("bid_ros.learning.training.plot_log", interrupt)  # after step 3
        train(config, dataset, tmp_path, task, progress=False)
    assert train(config, dataset, tmp_path, task, progress=False).resumed_from == 2
    one, two = (torch.load(folder / "strong.pt", weights_only=True)["weights"] for folder in (whole, tmp_path))
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def interrupt(*_):
    raise KeyboardInterrupt


def test_several_runs_are_candidates(runs, tmp_path):
    first, second, task, dataset = runs
    bundle = export(first, tmp_path / "bundle", task, also=[second])
    assert bundle.weak is None and bundle.settings.members == 2
    assert sorted(bundle.strong) == ["encoder", "encoder_2", "frames", "frames_2"]
    assert set(bundle.provenance["difference_to_pytorch"]["strong"]) == {"encoder", "encoder_2"}
    policy = load_policy(bundle, task, "onnx")
    values = {name: dataset.observations[name][:2] for name in ("front", "tool_position")}
    maker = DecisionMaker(policy, bundle_decoder("bid", bundle, task, 16, 1), task)
    record = maker.decide(Observation(0, values))
    assert record.strong.shape == (2, task.horizon, task.action_dim)
    assert np.abs(np.diff(record.strong, axis=0)).max() > 1e-4
    alone = load_policy(export(second, tmp_path / "alone", task), task, "onnx")
    chunk, _ = alone.sample(alone.encode(Observation(0, values)), 1, 0, np.random.default_rng(0))
    np.testing.assert_allclose(chunk[0], record.strong[1], atol=1e-6)


def test_runs_that_do_not_fit_beside_each_other_are_refused(runs, make_dataset, make_config, tmp_path):
    first, second, task, _ = runs
    for name, change, message in (
        ("other_data", {"dataset": make_dataset(task, seed=5)}, "its observation differs; valid is a run on the same"),
        ("diffusion", {"family": "diffusion"}, "valid is a run of the family act with the same action_reference"),
    ):
        dataset = change.pop("dataset", runs[3])
        config = make_config(**{"family": "act", "act": SMALL, "steps": 1, "validation_share": 0.0} | change)
        train(config, dataset, tmp_path / name, task, progress=False)
        with pytest.raises(BidError, match=message):
            export(first, tmp_path / "bundle", task, also=[tmp_path / name])
    with pytest.raises(BidError, match="the family diffusion draws its own candidates; leave it out"):
        export(tmp_path / "diffusion", tmp_path / "bundle", task, also=[second])
    with pytest.raises(BidError, match="is given twice; valid are runs with other seeds"):
        export(first, tmp_path / "bundle", task, also=[second, first])
    assert not (tmp_path / "bundle").exists()


def test_sizes_and_samplings_that_are_impossible(runs, tmp_path):
    with pytest.raises(BidError, match="act: width is 18; valid with 4 heads is a multiple of 4"):
        ActConfig(width=18)
    with pytest.raises(BidError, match="sampling_steps is given for a policy of the family act, which has none"):
        export(runs[0], tmp_path / "bundle", runs[2], sampling_steps=3)
