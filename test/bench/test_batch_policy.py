from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml
from installed import TORCH
from tiny_bundle import denoiser_model, write_manifest
from tiny_scene import replace_denoiser, tiny_setup
from tiny_vqbet import make_tiny_vqbet

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.core.observation import Observation
from bid_ros.decoding import DecodeRequest, Guidance
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.draft import Draft

REQUEST = DecodeRequest(0, 100_000_000, 2, 16, 3)


def observation(seed):
    rng = np.random.default_rng(seed)
    return Observation(0, {name: rng.uniform(100, 400, (2, 3)) for name in ("block", "agent")})


def drafts(batch, count, samples=5, weak=5, mode="noise"):
    encoded = [batch.unbatched.encode(observation(seed), weak=weak > 0) for seed in range(count)]
    rngs = [np.random.default_rng((7, seed)) for seed in range(count)]
    starts = [None if mode == "noise" else np.full((16, 3), 100.0 + seed) for seed in range(count)]
    items = zip(encoded, rngs, starts, strict=True)
    return [Draft(REQUEST, code, samples, weak, rng, start, mode) for code, rng, start in items]


@pytest.mark.parametrize("runtime", ["onnx", "openvino"])
@pytest.mark.parametrize("mode", ["noise", "clean", "renoise"])
def test_samples_are_those_of_the_unbatched_policy(setup, runtime, mode):
    batch = BatchPolicy(load_bundle(setup.bundle, setup.task), setup.task, runtime)
    together = batch.sample(drafts(batch, 20, mode=mode))
    for draft, (strong, weak) in zip(drafts(batch, 20, mode=mode), together, strict=True):
        alone = batch.unbatched.sample(draft.encoded, 5, 5, draft.rng, draft.start, draft.start_mode)
        np.testing.assert_allclose(strong, alone[0], atol=1e-3)
        np.testing.assert_allclose(weak, alone[1], atol=1e-3)
    assert np.ptp([strong[0, -1, 0] for strong, _ in together]) > 10, "every environment must have its own condition"


def spaced(setup, folder):
    """The bundle of a set-up, with actions that count from the newest observation."""
    shutil.copytree(setup.bundle, folder)
    content = yaml.safe_load((folder / "bundle.yaml").read_text())
    action = [{"feature": item.name, "reference": "observed", "observed": "block"} for item in setup.task.action]
    space = {"past_rows": setup.task.observation_steps - 1, "action": action}
    write_manifest(folder, {**content, "format": 2, "space": space})
    return load_bundle(folder, setup.task)


@pytest.mark.parametrize("mode", ["noise", "renoise"])
def test_a_policy_with_a_space_shares_its_calls_too(setup, tmp_path, mode):
    """Each environment's chunks count from its own observation."""
    batch = BatchPolicy(spaced(setup, tmp_path / "spaced"), setup.task, "onnx")
    assert batch.batched
    together = batch.sample(drafts(batch, 20, mode=mode))
    for draft, (strong, weak) in zip(drafts(batch, 20, mode=mode), together, strict=True):
        alone = batch.unbatched.sample(draft.encoded, 5, 5, draft.rng, draft.start, draft.start_mode)
        np.testing.assert_allclose(strong, alone[0], atol=1e-3)
        np.testing.assert_allclose(weak, alone[1], atol=1e-3)
    assert np.ptp([strong[0, -1, 0] for strong, _ in together]) > 10


def test_samples_do_not_depend_on_who_shares_the_call(batch):
    together = batch.sample(drafts(batch, 33))
    reverse = batch.sample(drafts(batch, 33)[::-1])[::-1]
    alone = [batch.sample([draft])[0] for draft in drafts(batch, 33)]
    for first, second, third in zip(together, reverse, alone, strict=True):
        for part in range(2):
            assert np.array_equal(first[part], second[part]) and np.array_equal(first[part], third[part])


def test_mixed_drafts_come_back_in_order(batch):
    mixed = [*drafts(batch, 2, samples=1, weak=0), *drafts(batch, 2, mode="clean")]
    shapes = [(strong.shape, weak is None) for strong, weak in batch.sample(mixed)]
    assert shapes == [((1, 16, 3), True)] * 2 + [((5, 16, 3), False)] * 2


@pytest.mark.skipif(not TORCH, reason="gradients need PyTorch")
def test_guided_drafts_are_drawn_each_for_itself_and_come_back_in_order(setup):
    batch = BatchPolicy(load_bundle(setup.bundle, setup.task), setup.task, "torch")
    target = Guidance(np.full((16, 3), 300.0), np.ones(16), 5.0)
    guided = [replace(draft, guidance=target) for draft in drafts(batch, 2, samples=1, weak=0)]
    free = batch.sample(drafts(batch, 2, samples=1, weak=0))
    (first, _), (between, _), (last, _) = batch.sample([guided[0], drafts(batch, 2, samples=1, weak=0)[1], guided[1]])
    np.testing.assert_array_equal(between, free[1][0])
    for found, (alone, _) in ((first, free[0]), (last, free[1])):
        assert np.abs(found - 300.0).mean() < np.abs(alone - 300.0).mean()


def test_a_graph_that_takes_one_condition_only_is_run_once_an_environment(tmp_path, batch):
    setup = tiny_setup(tmp_path)
    # Its condition is a matrix that is added to every chunk: for many conditions it would not mean the same.
    replace_denoiser(setup.bundle, "strong", denoiser_model(setup.task, 0.05))
    single = BatchPolicy(load_bundle(setup.bundle, setup.task), setup.task, "onnx")
    assert batch.batched and not single.batched
    for draft, (strong, weak) in zip(drafts(single, 3), single.sample(drafts(single, 3)), strict=True):
        alone = single.unbatched.sample(draft.encoded, 5, 5, draft.rng)
        assert np.array_equal(strong, alone[0])
        np.testing.assert_allclose(weak, alone[1], atol=1e-3)


def test_a_policy_that_denoises_nothing_samples_for_one_environment_after_the_other(setup, tmp_path):
    batch = BatchPolicy(make_tiny_vqbet(tmp_path / "vqbet", setup.task), setup.task, "onnx")
    assert not batch.batched
    for draft, (strong, weak) in zip(drafts(batch, 3), batch.sample(drafts(batch, 3)), strict=True):
        alone = batch.unbatched.sample(draft.encoded, 5, 5, draft.rng)
        np.testing.assert_array_equal(strong, alone[0])
        np.testing.assert_array_equal(weak, alone[1])
