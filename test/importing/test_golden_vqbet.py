"""The VQ-BeT policy that lerobot 0.6.1 saved: codes and chunks through the exported bundle are equal."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

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


def test_the_layout_of_0_3_3_is_the_same_policy(golden, tmp_path):
    folder = golden("vqbet_image").path / "policy"
    config = json.loads((folder / "config.json").read_text()) | {"mlp_hidden_dim": 1024}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = load_file(folder / "model.safetensors")
    statistics = load_file(next(folder.glob("policy_preprocessor_step_*.safetensors")))
    for name, groups in (
        ("observation.state", ["normalize_inputs"]),
        ("action", ["normalize_targets", "unnormalize_outputs"]),
    ):
        for group, end in product(groups, ("min", "max")):
            tensors[f"{group}.buffer_{name.replace('.', '_')}.{end}"] = statistics[f"{name}.{end}"].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    new, old = (read_policy(str(path), ImportOptions()) for path in (folder, tmp_path))
    for one, other in ((new.encoder, old.encoder), (new.denoiser, old.denoiser)):
        assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())
    for one, other in (
        (new.action, old.action),
        *((new.observation[key], old.observation[key]) for key in new.observation),
    ):
        np.testing.assert_array_equal([one.minimum, one.maximum], [other.minimum, other.maximum])


def test_other_sampling_is_refused(golden):
    from bid_ros.core.errors import BidError

    with pytest.raises(BidError, match="draws codes in one step; valid is neither a sampler nor"):
        read_policy(str(golden("vqbet_image").path / "policy"), ImportOptions(sampling_steps=3))
