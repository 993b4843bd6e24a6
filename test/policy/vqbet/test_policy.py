from __future__ import annotations

import numpy as np
import pytest
from small_task import SMALL
from tiny_vqbet import CODES, make_tiny_vqbet

from bid_ros.core.errors import BundleError, DecodingError, ObservationError
from bid_ros.core.observation import Observation
from bid_ros.core.task import parse_task
from bid_ros.decoding import BidConfig, DecoderConfig, build_decoder, select
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy, start_policy

VALUES = [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}]
TASK = parse_task({**SMALL, "observation": VALUES, "action": VALUES})
AHEAD = TASK.observation_steps - 1


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_tiny_vqbet(tmp_path_factory.mktemp("tiny_vqbet"), TASK)


@pytest.fixture(scope="module")
def policy(bundle):
    return load_policy(bundle, TASK, "onnx")


@pytest.fixture
def observation() -> Observation:
    values = {"tool_position": np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.3]]), "gripper_width": np.array([[0.8], [0.4]])}
    return Observation(1_000_000_000, values)


def test_samples_are_chunks_of_codes(policy, bundle, observation):
    strong, weak = policy.sample(policy.encode(observation), 200, 100, np.random.default_rng(0))
    assert strong.shape == (200, 4, 4)
    assert weak is not None
    assert weak.shape == (100, 4, 4)
    # The offsets are small: every value lies near the one that a code stands for.
    grid = bundle.action.denormalise(np.arange(CODES) / CODES * np.ones((4, 1))).T
    distance = np.abs(strong[..., None, :] - grid[None, None].reshape(1, 1, CODES, 4)).min(axis=2)
    assert distance.max() < 0.15 < np.diff(grid[:, 0])[0]
    kinds = [len(np.unique(chunks.round(6), axis=0)) for chunks in (strong[:100], weak)]
    assert 1 < kinds[0] < kinds[1] <= CODES * CODES


def test_the_past_continues_the_first_step_backwards(policy, observation):
    strong, _ = policy.sample(policy.encode(observation), 5, 0, np.random.default_rng(0))
    steps = np.diff(strong, axis=1)
    assert AHEAD == 1
    assert np.abs(steps[:, AHEAD]).min() > 0
    np.testing.assert_allclose(steps[:, AHEAD - 1], steps[:, AHEAD], atol=1e-12)


def test_equal_noise_gives_equal_chunks_whatever_the_weak_number(policy, observation):
    encoded = policy.encode(observation)
    first, none = policy.sample(encoded, 4, 0, np.random.default_rng(3))
    second, weak = policy.sample(encoded, 4, 4, np.random.default_rng(3))
    assert none is None
    assert weak is not None
    np.testing.assert_array_equal(first, second)


def test_weak_samples_need_a_weak_encoding(policy, observation):
    with pytest.raises(DecodingError, match="1 weak samples were asked for, but"):
        policy.sample(policy.encode(observation, weak=False), 1, 1, np.random.default_rng(0))
    with pytest.raises(DecodingError, match="valid is 1 or more"):
        policy.sample(policy.encode(observation), 0, 0, np.random.default_rng(0))


def test_an_observation_that_lacks_a_feature(policy, observation):
    with pytest.raises(ObservationError, match="'gripper_width' is missing"):
        policy.encode(Observation(0, {"tool_position": observation.values["tool_position"]}))


def test_a_start_is_refused(policy, observation):
    with pytest.raises(DecodingError, match="start mode is 'renoise', but a policy of the family vqbet denoises"):
        policy.sample(policy.encode(observation), 1, 0, np.random.default_rng(0), np.zeros((4, 4)), "renoise")


@pytest.mark.parametrize("name", ["warmstart", "warmstart:warm_start=clean", "bid+warmstart", "rtc"])
def test_decoders_that_change_the_denoising_are_refused(policy, bundle, name):
    with pytest.raises(DecodingError, match="changes the denoising of samples, but the family vqbet denoises nothing"):
        bundle_decoder(name, bundle, TASK, samples=4, action_horizon=1)
    decoder = build_decoder(name, DecoderConfig(samples=4))
    with pytest.raises(DecodingError, match=r"starts from its last decision|needs the network.s gradient"):
        DecisionMaker(policy, decoder, TASK)


@pytest.mark.parametrize("name", ["vanilla", "ema", "bid", "bid+ema", "keystone"])
def test_other_decoders_decide(bundle, observation, name):
    policy = start_policy(bundle, TASK, 8, "onnx")
    maker = DecisionMaker(policy, bundle_decoder(name, bundle, TASK, samples=8, action_horizon=1), TASK)
    first = maker.decide(observation)
    later = Observation(observation.stamp_ns + TASK.dt_ns, observation.values)
    second = maker.decide(later)
    assert first is not None
    assert second is not None
    assert second.chunk.actions.shape == (3, 4)


def test_the_past_counts_for_nothing_in_a_decision(policy, bundle, observation):
    decoder = build_decoder("bid", DecoderConfig(samples=8, variant="paper"))
    maker = DecisionMaker(policy, decoder, TASK)
    before = maker.decide(observation)
    found = maker.decide(Observation(observation.stamp_ns + TASK.dt_ns, observation.values))
    assert before is not None
    assert found is not None
    config = BidConfig(variant="paper", executed=1)
    previous = before.choice.actions[1 + AHEAD :]
    wanted = select(found.strong[:, AHEAD:], found.weak[:, AHEAD:], previous, config)
    np.testing.assert_array_equal(found.choice.selection.total, wanted.total)
    assert found.choice.index == wanted.index


def test_a_graph_of_another_size_is_refused(tmp_path):
    bundle = make_tiny_vqbet(tmp_path / "wrong", TASK, weak=False, width=17)
    with pytest.raises(BundleError, match=r"strong_encoder.onnx: output is float32 \(1, 17\); valid is float32 \(1, "):
        load_policy(bundle, TASK, "onnx")
