"""A policy in the task's terms around one in its network's."""

from dataclasses import replace

import numpy as np
import pytest
from space_samples import PLACE, random_chunks, random_observation

from bid_ros.core.errors import DecodingError, ObservationError
from bid_ros.core.observation import History
from bid_ros.decoding import Guidance, build_decoder
from bid_ros.policy.base import Capabilities
from bid_ros.policy.decide import DecisionMaker
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.policy import SpacedPolicy, check_space
from bid_ros.policy.spaces.view import network_task

MILLIMETRES = Part(feature="tool_position", scale=0.001, reference="observed")
LINEAR = Space(
    observation=(ObservedFeature(name="state", columns=(Part(feature="tool_position", scale=0.001),)),),
    action=(MILLIMETRES, Part(feature="tool_rotation"), Part(feature="gripper_width", form="fraction")),
)
STEPS = replace(LINEAR, action=(replace(MILLIMETRES, reference="previous"), *LINEAR.action[1:]))
TURNED = replace(LINEAR, action=(LINEAR.action[0], Part(feature="tool_rotation", form="matrix"), LINEAR.action[2]))


class Network:
    """A policy in a network's terms that keeps what it is given, and samples noise around a chunk."""

    runtime, has_weak = "numpy", True

    def __init__(self, space):
        self.task = network_task(space, PLACE)
        self.shape = (self.task.horizon, self.task.action_dim)
        self.given, self.capabilities = {}, Capabilities(gradients=True)

    def encode(self, observation, weak=True):
        self.given["observed"] = observation.values
        return "encoded", weak

    def sample(self, encoded, strong, weak, rng, start=None, start_mode="noise", guidance=None):
        self.given |= {"encoded": encoded, "start": start, "mode": start_mode, "guidance": guidance}
        chunks = rng.standard_normal((strong + weak, *self.shape))
        return chunks[:strong], chunks[strong:] if weak else None

    def warm_up(self, samples):
        self.given["warm"] = samples


def spaced(space=LINEAR):
    network = Network(space)
    return SpacedPolicy(network, space, PLACE), network


def encoded(policy, steps=2):
    return policy.encode(random_observation(np.random.default_rng(0), steps), weak=False)


def test_the_network_meets_its_own_terms_alone():
    policy, network = spaced()
    seen = random_observation(np.random.default_rng(0))
    found = policy.encode(seen, weak=False)
    assert found.network == ("encoded", False)
    np.testing.assert_allclose(network.given["observed"]["state"], seen.values["tool_position"] * 1000)
    assert list(network.given["observed"]) == ["state"] == [item.name for item in network.task.observation]
    assert policy.capabilities.history == History(2, 100_000_000) and policy.has_weak and policy.runtime == "numpy"
    policy.warm_up(7)
    assert network.given["warm"] == 7


def test_rows_before_the_network_s_first_are_made_up():
    assert spaced()[0].capabilities.made_up_rows == 0
    assert spaced(replace(LINEAR, past_rows=0, horizon=16))[0].capabilities.made_up_rows == PLACE.observation_steps - 1
    network = Network(LINEAR)
    network.capabilities = Capabilities(made_up_rows=1)
    assert SpacedPolicy(network, LINEAR, PLACE).capabilities.made_up_rows == 1


def test_chunks_come_in_the_task_s_terms():
    policy, _ = spaced()
    seen = random_observation(np.random.default_rng(0))
    strong, weak = policy.sample(policy.encode(seen), 3, 2, np.random.default_rng(1))
    raw = np.random.default_rng(1).standard_normal((5, 16, 10))
    raw[..., :3] = seen.values["tool_position"][-1] + raw[..., :3] / 1000
    raw[..., 9] *= 0.08
    np.testing.assert_allclose(np.concatenate([strong, weak]), raw, atol=1e-12)
    assert policy.sample(policy.encode(seen), 1, 0, np.random.default_rng(1))[1] is None


@pytest.mark.parametrize("space", [LINEAR, STEPS])
def test_a_start_reaches_the_network_in_its_terms(space):
    policy, network = spaced(space)
    start, found = random_chunks(np.random.default_rng(2), (16,)), encoded(policy)
    policy.sample(found, 1, 0, np.random.default_rng(0), start, "renoise")
    assert policy.capabilities.starts and network.given["mode"] == "renoise"
    again = policy._action.to_task(network.given["start"][None], found.anchor)[0]
    np.testing.assert_allclose(again, start, atol=1e-12)


def test_a_target_reaches_the_network_in_its_terms():
    policy, network = spaced()
    target, weights, found = random_chunks(np.random.default_rng(2), (16,)), np.linspace(1, 0, 16), encoded(policy)
    policy.sample(found, 1, 0, np.random.default_rng(0), guidance=Guidance(target, weights, 5.0))
    given = network.given["guidance"]
    np.testing.assert_allclose(given.target[:, :3], (target[:, :3] - found.anchor["tool_position"][-1]) * 1000)
    np.testing.assert_array_equal(given.weights, weights)
    assert given.clip == 5.0


@pytest.mark.parametrize(
    ("space", "starts", "gradients"),
    [
        (LINEAR, True, True),
        (STEPS, True, False),
        (TURNED, False, False),
        (replace(LINEAR, horizon=20), False, True),
        (replace(LINEAR, horizon=32, rate_hz=20.0), False, False),
        (Space(), True, True),
    ],
)
def test_what_has_no_exact_way_back_is_refused(space, starts, gradients):
    policy, _ = spaced(space)
    assert (policy.capabilities.starts, policy.capabilities.gradients) == (starts, gradients)
    for name, able in (("warmstart", starts), ("rtc", gradients)):
        decoder = build_decoder(name)
        if able:
            DecisionMaker(policy, decoder, PLACE)
            check_space(space, PLACE, decoder)
        else:
            with pytest.raises(DecodingError, match=f"decoder '{name}' .*; valid is"):
                DecisionMaker(policy, decoder, PLACE)
            with pytest.raises(DecodingError, match=f"decoder '{name}' .* no exact way back .*; valid is a decoder"):
                check_space(space, PLACE, decoder)
    chunk, found = random_chunks(np.random.default_rng(2), (16,)), encoded(policy)
    if not starts:
        with pytest.raises(DecodingError, match="start mode is 'clean'; valid is noise: the policy, or the space"):
            policy.sample(found, 1, 0, np.random.default_rng(0), chunk, "clean")
    if not gradients:
        with pytest.raises(DecodingError, match="guided samples were asked for; valid are unguided ones"):
            policy.sample(found, 1, 0, np.random.default_rng(0), guidance=Guidance(chunk, np.ones(16), 1.0))


def test_a_policy_that_cannot_start_does_not_learn_it_from_its_space():
    network = Network(LINEAR)
    network.capabilities = Capabilities(starts=False)
    policy = SpacedPolicy(network, LINEAR, PLACE)
    assert not policy.capabilities.starts and not policy.capabilities.gradients


def test_more_steps_are_wanted_and_checked():
    policy, network = spaced(replace(LINEAR, observation_steps=5, past_rows=1, rate_hz=20.0, horizon=32))
    assert (
        policy.capabilities.history
        == History(5, 50_000_000)
        == DecisionMaker(policy, build_decoder("vanilla"), PLACE).history
    )
    encoded(policy, steps=5)
    assert network.given["observed"]["state"].shape == (5, 3)
    with pytest.raises(ObservationError, match=r"has shape .2, .*; the policy needs .5, "):
        encoded(policy, steps=2)
    seen = random_observation(np.random.default_rng(0), 5)
    with pytest.raises(ObservationError, match=r"'tool_rotation' is missing; the policy needs .5, 6."):
        policy.encode(replace(seen, values={k: v for k, v in seen.values.items() if k != "tool_rotation"}))


def test_numbers_that_are_none_reach_the_decoder_which_says_so():
    policy, network = spaced(TURNED)
    network.sample = lambda *_: (np.full((4, 16, 13), np.nan), None)
    maker = DecisionMaker(policy, build_decoder("vanilla"), PLACE)
    with pytest.raises(DecodingError, match=r"strong samples hold \d+ values that are not finite"):
        maker.decide(random_observation(np.random.default_rng(0)))
