"""A policy that predicts: one chunk a checkpoint, the same every time; several checkpoints are candidates."""

from __future__ import annotations

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving
from small_task import SMALL
from tiny_act import make_tiny_act

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.observation import Observation
from bid_ros.core.task import parse_task
from bid_ros.decoding import BidConfig, select
from bid_ros.policy.act.settings import ActSettings
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy, start_policy

VALUES = [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}]
TASK = parse_task({**SMALL, "observation": VALUES, "action": VALUES})
AHEAD = TASK.observation_steps - 1
MEMBERS = 4


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_tiny_act(tmp_path_factory.mktemp("tiny_act"), TASK, MEMBERS)


@pytest.fixture(scope="module")
def policy(bundle):
    return load_policy(bundle, TASK, "onnx")


def observation(step=0):
    values = {"tool_position": np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.3]]), "gripper_width": np.array([[0.8], [0.4]])}
    values["tool_position"] = values["tool_position"] + 0.01 * step
    return Observation(1_000_000_000 + step * TASK.dt_ns, values)


def test_a_member_has_one_chunk_whatever_is_drawn(policy):
    encoded = policy.encode(observation())
    one, none = policy.sample(encoded, 1, 0, np.random.default_rng(0))
    all_of_them, _ = policy.sample(encoded, MEMBERS, 0, np.random.default_rng(1))
    assert none is None and all_of_them.shape == (MEMBERS, TASK.horizon, TASK.action_dim)
    np.testing.assert_array_equal(one[0], all_of_them[0])
    assert min(np.abs(all_of_them[0] - other).max() for other in all_of_them[1:]) > 1e-3
    steps = np.diff(all_of_them, axis=1)
    np.testing.assert_allclose(steps[:, AHEAD - 1], steps[:, AHEAD], atol=1e-12)  # the past continues backwards


@pytest.mark.parametrize(
    ("count", "weak", "mode", "message"),
    [
        (MEMBERS + 1, 0, "noise", "5 samples were asked for; valid is up to 4: a policy of the family act draws none"),
        (1, 1, "noise", "1 weak samples were asked for"),
        (1, 0, "renoise", "start mode is 'renoise', but a policy of the family act denoises nothing"),
    ],
)
def test_more_than_there_is_is_refused(policy, count, weak, mode, message):
    with pytest.raises(DecodingError, match=message):
        policy.sample(policy.encode(observation()), count, weak, np.random.default_rng(0), None, mode)


def test_bid_chooses_among_the_members(bundle):
    """N is their number, whatever is asked for."""
    policy = start_policy(bundle, TASK, 16, "onnx")
    maker = DecisionMaker(policy, bundle_decoder("bid", bundle, TASK, 16, 1), TASK)
    first, second = (maker.decide(observation(step)) for step in range(2))
    assert first.strong.shape == second.strong.shape == (MEMBERS, TASK.horizon, TASK.action_dim)
    weights = maker._decoder._config.weights
    config = BidConfig(executed=1, weights=weights, mode_size=2)
    wanted = select(second.strong[:, AHEAD:], None, first.choice.actions[1 + AHEAD :], config)
    assert second.choice.index == wanted.index
    np.testing.assert_array_equal(second.choice.selection.total, wanted.total)


def test_a_decoder_that_takes_one_runs_one_network(bundle):
    policy = load_policy(bundle, TASK, "onnx")
    runs = []
    for number, member in enumerate(policy._strong):
        run = member.run
        member.run = lambda feeds, number=number, run=run: (runs.append(number), run(feeds))[1]
    DecisionMaker(policy, bundle_decoder("vanilla", bundle, TASK, 16, 1), TASK).decide(observation())
    assert runs == [0]


def test_a_single_member_leaves_nothing_to_choose(tmp_path):
    bundle = make_tiny_act(tmp_path / "one", TASK)
    for name in ("bid", "bid+lead", "keystone"):
        with pytest.raises(DecodingError, match=rf"decoder '{name.replace('+', '.')}' chooses among samples, but the "):
            bundle_decoder(name, bundle, TASK, 16, 1)
    maker = DecisionMaker(load_policy(bundle, TASK, "onnx"), bundle_decoder("ema", bundle, TASK, 16, 1), TASK)
    assert maker.decide(observation()).strong.shape[0] == 1


@pytest.mark.parametrize("members", [1, 3])
def test_a_server_tells_how_many_chunks_there_are(tmp_path, members):
    bundle = make_tiny_act(tmp_path / "served", TASK, members)
    with serving(load_policy(bundle, TASK, "onnx"), bundle, TASK) as server:
        pointer = remote_bundle(tmp_path / "remote", TASK, server.address, timeout_ms=20_000.0)
        if members == 1:
            with pytest.raises(DecodingError, match="is deterministic: it has one chunk for an observation"):
                bundle_decoder("bid", pointer, TASK, 16, 1)
            return
        maker = DecisionMaker(load_policy(pointer, TASK), bundle_decoder("bid", pointer, TASK, 16, 1), TASK)
        assert len(maker.decide(observation()).strong) == members


def test_a_bundle_that_is_not_of_the_family_is_refused(tmp_path):
    roles = {"encoder": "strong_encoder.onnx"}
    fewer = make_tiny_act(tmp_path / "fewer", TASK, graphs={"strong": roles, "weak": None}, settings=ActSettings(2))
    with pytest.raises(BundleError, match="act has 2 members; valid is a graph encoder_2"):
        load_policy(fewer, TASK, "onnx")
    weak = make_tiny_act(tmp_path / "weak", TASK, graphs={"strong": roles, "weak": roles})
    with pytest.raises(BundleError, match=r"draws no samples to contrast; valid is graphs\.weak null"):
        load_policy(weak, TASK, "onnx")
    with pytest.raises(BundleError, match="members is 17; valid"):
        ActSettings(17)
