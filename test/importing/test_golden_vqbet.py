"""The VQ-BeT policy that lerobot 0.6.1 saved: codes and chunks through the exported bundle are equal."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.observation import Observation
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions
from bid_ros.importing.write_bundle import write_imported
from bid_ros.policy.registry import load_policy


class Given:
    """Uniform numbers in place of random ones."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        assert shape == self.uniforms.shape
        return self.uniforms


@pytest.fixture(scope="module")
def imported(golden, kit, tmp_path_factory):
    case = golden("vqbet_image")
    strong = read_policy(str(case.path / "policy"), ImportOptions())
    task = kit.task_for(strong)
    bundle = write_imported(strong, None, tmp_path_factory.mktemp("bundles") / "vqbet", task)
    return case.numbers, bundle, load_policy(bundle, task, "onnx")


def test_chunks_of_the_same_draws_are_equal(imported):
    numbers, bundle, policy = imported
    for index in range(3):
        names = ("observation.image", "observation.state")
        encoded = policy.encode(Observation(0, {name: numbers[f"obs/{name}"][index] for name in names}))
        chunks, weak = policy.sample(encoded, 4, 0, Given(numbers["uniforms"][:, index, 4]))
        assert weak is None
        assert np.abs(bundle.action.normalise(chunks[:, 4:]) - numbers["chunk"][:, index]).max() < 1e-4
        assert np.abs(chunks[:, 4:] - numbers["chunk_action"][:, index]).max() < 0.05  # of 512 px


def test_a_roll_out_executes_the_rows_of_lerobot(imported):
    numbers, _, policy = imported
    actions, found = numbers["rollout/action"], np.zeros_like(numbers["rollout/action"])
    for time in np.flatnonzero(numbers["rollout/decides"]):
        rows = np.maximum(np.arange(time - 4, time + 1), 0)
        for robot in range(actions.shape[1]):
            names = ("observation.image", "observation.state")
            values = {name: numbers[f"rollout/{name}"][rows, robot] for name in names}
            draws = Given(numbers["rollout/uniforms"][time, robot, 4][None])
            chunks, _ = policy.sample(policy.encode(Observation(0, values)), 1, 0, draws)
            count = min(5, len(actions) - time)
            found[time : time + count, robot] = chunks[0, 4 : 4 + count]
    assert np.abs(found - actions).max() < 0.05  # of 512 px


def test_other_sampling_is_refused(golden):
    from bid_ros.core.errors import BidError

    with pytest.raises(BidError, match="draws codes in one step; valid is neither a sampler nor"):
        read_policy(str(golden("vqbet_image").path / "policy"), ImportOptions(sampling_steps=3))
