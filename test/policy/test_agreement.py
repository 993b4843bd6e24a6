import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.policy.agreement import compare_policies, decision_times, random_observations
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.registry import load_policy


@pytest.fixture
def bundle(tiny, task):
    return load_bundle(tiny, task)


class Shifted:
    """A policy whose strong samples are in another order, and a little off."""

    runtime = "shifted"

    def __init__(self, policy, turn, offset):
        self._policy, self._turn, self._offset = policy, turn, offset
        self.has_weak, self.capabilities = policy.has_weak, policy.capabilities

    def encode(self, observation, weak=True):
        return self._policy.encode(observation, weak)

    def sample(self, *arguments):
        strong, weak = self._policy.sample(*arguments)
        return np.roll(strong, self._turn, axis=0) + self._offset, weak


def test_a_policy_agrees_with_itself(bundle, task, policy):
    found = compare_policies(bundle, task, policy, policy, random_observations(bundle, task, 5), 4)
    assert (found.decisions, found.difference, found.agree) == (5, 0.0, 1.0)


def test_runtimes_differ_by_rounding(bundle, task, policy):
    other = DiffusionPolicy(bundle, task, "openvino")
    found = compare_policies(bundle, task, policy, other, random_observations(bundle, task, 5), 4)
    assert found.difference < 1e-5
    assert found.agree == 1.0


def test_differences_are_in_normalised_units(bundle, task, policy):
    size = (bundle.action.maximum - bundle.action.minimum) / 2
    other = Shifted(policy, 0, 0.01 * size)
    found = compare_policies(bundle, task, policy, other, random_observations(bundle, task, 3), 4)
    assert found.difference == pytest.approx(0.01, rel=1e-3)


def test_another_choice_counts_once(bundle, task, policy):
    found = compare_policies(bundle, task, policy, Shifted(policy, 1, 0.0), random_observations(bundle, task, 5), 4)
    assert found.agree == 0.0


def test_times_of_all_that_alternate(bundle, task, policy):
    seen = random_observations(bundle, task, 2)
    one, four = decision_times(bundle, task, [(policy, 1), (policy, 4)], seen, rounds=6, warm_up=1)
    assert one.shape == four.shape == (6,)
    assert (one > 0).all() and (four > 0).all()


def test_observations_of_noise_fit_the_task_and_the_training(bundle, task):
    for item in random_observations(bundle, task, 2):
        for feature in task.observation:
            value = item.values[feature.name]
            assert value.shape == (task.observation_steps, *feature.shape)
            if feature.kind != "image":
                assert np.abs(bundle.observation[feature.name].normalise(value)).max() <= 1.0 + 1e-6


def test_a_bundle_with_a_space_is_compared_in_the_spread_of_its_actions(task, tmp_path):
    deep = load_bundle(make_tiny_bundle(tmp_path / "deep", task, steps=5), task)
    policy = load_policy(deep, task, "onnx")
    seen = random_observations(deep, task, 3)
    assert {len(value) for item in seen for value in item.values.values()} == {5}
    assert compare_policies(deep, task, policy, policy, seen, 4).difference == 0.0
    moved = compare_policies(deep, task, policy, Shifted(policy, 0, 0.01), seen, 4)
    assert moved.difference == pytest.approx(0.1, rel=1e-3)  # the spread of the tiny policy is 0.1
