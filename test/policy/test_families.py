"""Every decoder with every family of policies and sampler: it decides, or says why it cannot before anything moves."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from installed import TORCH
from small_task import SMALL
from tiny_act import make_tiny_act
from tiny_bundle import DIFFUSION, make_tiny_bundle
from tiny_vqbet import make_tiny_vqbet

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.observation import Observation
from bid_ros.core.registry import Registry
from bid_ros.core.task import parse_task
from bid_ros.decoding.registry import decoder_names
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import FAMILIES as REGISTERED
from bid_ros.policy.registry import load_policy

SAMPLERS = {
    "ddim": {},
    "ddpm": {"sampler": "ddpm", "prediction": "epsilon"},
    "consistency": {"sampler": "consistency", "sampling_steps": 2},
    "flow": {"sampler": "flow", "prediction": "velocity", "sampling_steps": 5},
}
FAMILIES = (*SAMPLERS, "vqbet", "act")
DENOISING = [name for name in decoder_names() if "warmstart" in name or name == "rtc"]
VALUES = [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}]
TASK = replace(parse_task({**SMALL, "observation": VALUES, "action": VALUES}), horizon=16)
N, DELAY = 6, 2


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A tiny bundle of each family and sampler."""
    folder = tmp_path_factory.mktemp("families")
    for name, settings in SAMPLERS.items():
        make_tiny_bundle(folder / name, TASK, diffusion={**DIFFUSION, **settings})
    make_tiny_vqbet(folder / "vqbet", TASK)
    make_tiny_act(folder / "act", TASK, members=3)
    return {name: load_bundle(folder / name, TASK) for name in FAMILIES}


def observation(step):
    values = {"tool_position": np.tile([0.4 + 0.01 * step, 0.1, 0.3], (2, 1)), "gripper_width": np.full((2, 1), 0.04)}
    return Observation(1_000_000_000 + step * TASK.dt_ns, values)


def decided(bundle, decoder, runtime="onnx", steps=3):
    """The records of a few decisions, with a delay."""
    chosen = bundle_decoder(decoder, bundle, TASK, N, 1)
    maker = DecisionMaker(load_policy(bundle, TASK, runtime), chosen, TASK, seed=4)
    maker.delay = DELAY
    return [maker.decide(observation(step)) for step in range(steps)]


def needs(decoder):
    if decoder == "rtc":
        return pytest.param(decoder, marks=pytest.mark.skipif(not TORCH, reason="gradients need PyTorch"))
    return decoder


@pytest.mark.parametrize("decoder", [needs(name) for name in decoder_names()])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_decoder_decides_or_is_refused_by_name(bundles, family, decoder):
    runtime = "torch" if decoder == "rtc" else "onnx"
    if family in ("vqbet", "act") and decoder in DENOISING:
        with pytest.raises(
            DecodingError, match=rf"decoder '{re.escape(decoder)}' .* the family {family} denoises nothing; valid is"
        ):
            decided(bundles[family], decoder, runtime)
        return
    records = decided(bundles[family], decoder, runtime)
    for record, again in zip(records, decided(bundles[family], decoder, runtime), strict=True):
        assert record.chunk.actions.shape == (TASK.horizon - 1, TASK.action_dim)
        assert np.isfinite(record.chunk.actions).all()
        np.testing.assert_array_equal(record.chunk.actions, again.chunk.actions)


@pytest.mark.parametrize("family", SAMPLERS)
def test_without_gradients_guided_samples_are_refused(bundles, family):
    with pytest.raises(DecodingError, match=r"'rtc' needs the network's gradient, which runtime 'onnx' has not; valid"):
        decided(bundles[family], "rtc")


def away(records):
    """How far the second decision is from the first where they overlap and the first is committed, in spreads."""
    first, second = (record.chunk.actions for record in records[:2])
    return np.abs(first[1 : 1 + DELAY] - second[:DELAY]).mean()


@pytest.mark.skipif(not TORCH, reason="gradients need PyTorch")
@pytest.mark.parametrize(("family", "share"), [("flow", 0.7), ("ddpm", 0.7), ("ddim", 1.0), ("consistency", 1.0)])
def test_guided_samples_continue_what_is_committed(bundles, family, share):
    """By little where the tiny network predicts chunks that hardly depend on the sample: its gradient is 0.05."""
    assert away(decided(bundles[family], "rtc", "torch")) < share * away(decided(bundles[family], "vanilla", "torch"))


@pytest.mark.parametrize("family", SAMPLERS)
def test_samples_that_start_warm_are_others_and_differ(bundles, family):
    warm, cold = decided(bundles[family], "bid+warmstart"), decided(bundles[family], "bid")
    np.testing.assert_array_equal(warm[0].strong, cold[0].strong)  # there is no decision to start from
    assert not np.array_equal(warm[1].strong, cold[1].strong)
    assert np.ptp(warm[1].strong, axis=0).max() > 0


def test_a_policy_of_another_package_says_what_it_can_do(tiny, task, monkeypatch):
    """One that was written before says it with attributes that nobody reads any more."""
    before = replace(REGISTERED.find("diffusion"), load=lambda *_: object())
    bundle = load_bundle(tiny, task)
    monkeypatch.setattr(Registry, "find", lambda self, name: before)
    with pytest.raises(BundleError, match="a policy of the family diffusion has no attribute 'capabilities'; valid is"):
        load_policy(bundle, task)
