"""Guided samples of a policy elsewhere: the chunk that draws them goes over the wire, the gradient stays there."""

from __future__ import annotations

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving

from bid_ros.core.errors import BidError, DecodingError, RemoteError
from bid_ros.core.observation import Observation
from bid_ros.decoding import Guidance
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder, check_decoder
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.service import PolicyService

pytest.importorskip("torch")


@pytest.fixture
def bundle(tiny, task):
    return load_bundle(tiny, task)


@pytest.fixture
def guided(task):
    ends = np.zeros(task.horizon)
    ends[:4] = 1.0
    return Guidance(np.full((task.horizon, task.action_dim), 0.3), ends, 5.0)


def pointed(server, task, folder):
    pointer = remote_bundle(folder, task, server.address, timeout_ms=20_000.0)
    return pointer, load_policy(pointer, task)


def test_guided_samples_are_those_of_the_policy_there(bundle, task, observe, guided, tmp_path):
    policy = load_policy(bundle, task, "torch")
    with serving(policy, bundle, task) as server:
        pointer, remote = pointed(server, task, tmp_path / "remote")
        assert pointer.settings.gradients and remote.capabilities.gradients
        found, _ = remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(3), guidance=guided)
        free, _ = remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(3))
    expected, _ = policy.sample(policy.encode(observe()), 2, 0, np.random.default_rng(3), guidance=guided)
    np.testing.assert_array_equal(found, expected)
    assert np.abs(found - free).max() > 1e-3


def test_rtc_decides_there_as_here(bundle, task, observe, tmp_path):
    policy = load_policy(bundle, task, "torch")
    with serving(policy, bundle, task) as server:
        pointer, remote = pointed(server, task, tmp_path / "remote")
        chunks = []
        for own, used in ((bundle, policy), (pointer, remote)):
            decoder = bundle_decoder("rtc", own, task, 1, 1)
            check_decoder(decoder, used)
            maker = DecisionMaker(used, decoder, task)
            for step in range(3):
                record = maker.decide(Observation(1_000_000_000 + step * task.dt_ns, observe(grey=10 + step).values))
                chunks.append(record.strong)
    for here, there in zip(chunks[:3], chunks[3:], strict=True):
        np.testing.assert_array_equal(here, there)


def test_a_server_without_gradients_says_so(policy, bundle, task, observe, guided, tmp_path):
    with serving(policy, bundle, task) as server:
        pointer, remote = pointed(server, task, tmp_path / "remote")
        assert not pointer.settings.gradients and not remote.capabilities.gradients
        with pytest.raises(
            DecodingError, match=r"'rtc' needs the network's gradient, .* runtime torch \(behind bid serve"
        ):
            check_decoder(bundle_decoder("rtc", pointer, task, 1, 1), remote)
        with pytest.raises(RemoteError, match="need gradients, which runtime 'onnx' has not; valid is a server of"):
            remote.sample(remote.encode(observe()), 1, 0, np.random.default_rng(0), guidance=guided)


def test_a_server_that_was_started_without_gradients_later_has_none(policy, bundle, task, tmp_path):
    with serving(load_policy(bundle, task, "torch"), bundle, task) as server:
        pointer, _ = pointed(server, task, tmp_path / "remote")
    with serving(policy, bundle, task, server.port):
        assert pointer.settings.gradients and not load_policy(pointer, task).capabilities.gradients


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"clip": None}, "impossible numbers; valid are weights of 0 to 1, and a clip of at least 0"),
        ({"clip": float("nan")}, "impossible numbers"),
        ({"weights": 2.0}, "impossible numbers"),
        ({"target": np.zeros(3)}, r"'target' of shape \(3,\); valid is"),
        ({"more": 1}, "guidance is not valid; valid is a map with target, weights, clip"),
    ],
)
def test_guidance_that_is_not_valid_is_refused(bundle, task, observe, guided, changed, words):
    service = PolicyService(load_policy(bundle, task, "torch"), bundle, task)
    if "weights" in changed:
        changed = {"weights": np.full(task.horizon, changed["weights"])}
    said = {**vars(guided), **changed}
    with pytest.raises(BidError, match=words):
        service.answer({**observe().values, "bid": {"guidance": said}}, np.random.default_rng(0))
