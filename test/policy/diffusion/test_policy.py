import hashlib
import shutil
from dataclasses import replace

import numpy as np
import onnx
import pytest
import yaml
from installed import TORCH
from tiny_bundle import denoiser_model, encoder_model, make_tiny_bundle, write_manifest

from bid_ros.core.errors import BundleError, DecodingError, ObservationError
from bid_ros.core.observation import Observation
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.policy import DiffusionPolicy

HOLD = np.array([0.5, 0.1, 0.3, 1, 0, 0, 0, -1, 0, 0.04])


def draw(policy, observation, strong=8, weak=8, seed=0, **start):
    return policy.sample(policy.encode(observation), strong, weak, np.random.default_rng(seed), **start)


def test_samples_are_in_task_units(policy, observe):
    strong, weak = draw(policy, observe())
    assert strong.shape == weak.shape == (8, 16, 10)
    assert strong.dtype == np.float64
    np.testing.assert_allclose(strong.mean(axis=(0, 1)), HOLD, atol=0.02)
    assert weak.std(axis=0).mean() > 2 * strong.std(axis=0).mean() > 0


def test_the_same_seed_gives_the_same_bits(policy, observe):
    for first, second in zip(draw(policy, observe()), draw(policy, observe()), strict=True):
        np.testing.assert_array_equal(first, second)
    assert np.abs(draw(policy, observe(), seed=1)[0] - draw(policy, observe())[0]).max() > 1e-4


def test_weak_samples_do_not_change_the_strong_ones(policy, observe):
    alone, none = draw(policy, observe(), weak=0)
    assert none is None
    np.testing.assert_array_equal(alone, draw(policy, observe(), weak=3)[0])


def test_samples_are_independent_of_their_neighbours(policy, observe):
    np.testing.assert_allclose(
        draw(policy, observe(), strong=16)[0][:4], draw(policy, observe(), strong=4)[0], atol=1e-6
    )


def test_images_matter(policy, observe):
    dark, bright = (draw(policy, observe(grey=grey))[0][..., 0].mean() for grey in (0, 255))
    assert bright - dark == pytest.approx(0.02 * 2 * 0.2, rel=0.1)  # 2 % a camera of half the range of x


def test_the_newest_row_of_the_observation_is_the_last(policy, observe):
    observation = observe()
    observation.values["gripper_width"][0] = 0.08
    np.testing.assert_allclose(draw(policy, observation)[0][..., 9].mean(), 0.04, atol=0.005)


@pytest.mark.parametrize("runtime", ["openvino", *TORCH])
def test_runtimes_sample_alike(tiny, task, policy, observe, runtime):
    other = DiffusionPolicy(load_bundle(tiny, task), task, runtime=runtime)
    assert (policy.runtime, other.runtime) == ("onnx", runtime)
    other.warm_up(8)
    for first, second in zip(draw(policy, observe()), draw(other, observe()), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-5)


def test_warm_start_takes_task_units(policy, observe):
    start = np.tile(HOLD, (16, 1))
    start[:, 0] = 0.32  # low in the workspace, yet a high number for a normalised one
    clean, _ = draw(policy, observe(), start=start, start_mode="clean")
    np.testing.assert_array_equal(clean[0], clean[-1])
    cold, _ = draw(policy, observe(), strong=200)
    warm, _ = draw(policy, observe(), strong=200, start=start, start_mode="renoise")
    assert warm[..., 0].mean() - cold[..., 0].mean() < -1e-3  # pulled towards the start
    np.testing.assert_allclose(warm[..., 1].mean(), cold[..., 1].mean(), atol=1e-3)


def test_a_policy_without_weak(tmp_path, task, observe):
    policy = DiffusionPolicy(
        load_bundle(make_tiny_bundle(tmp_path / "b", task, weak=False), task), task, runtime="onnx"
    )
    assert not policy.has_weak
    policy.warm_up(4)
    assert policy.encode(observe()).weak is None
    with pytest.raises(DecodingError, match="2 weak samples were asked for"):
        draw(policy, observe(), weak=2)


def test_the_weak_encoder_runs_only_if_wanted(policy, observe):
    encoded = policy.encode(observe(), weak=False)
    assert encoded.weak is None
    with pytest.raises(DecodingError, match="no weak encoding"):
        policy.sample(encoded, 4, 4, np.random.default_rng(0))


def test_impossible_counts_are_refused(policy, observe):
    with pytest.raises(DecodingError, match="0 strong and 1 weak"):
        draw(policy, observe(), strong=0, weak=1)


def test_observations_of_another_shape_are_refused(policy, observe):
    values = dict(observe().values)
    values["wrist"] = values["wrist"][:, :4]
    with pytest.raises(ObservationError, match=r"'wrist' has shape \(2, 4, 8, 3\); the policy needs \(2, 8, 8, 3\)"):
        policy.encode(Observation(0, values))
    del values["wrist"]
    with pytest.raises(ObservationError, match="'wrist' is missing"):
        policy.encode(Observation(0, values))


def swap(folder, name, model):
    """Replace a graph and its hash, as a faulty export would."""
    onnx.save(model, folder / name)
    manifest = yaml.safe_load((folder / "bundle.yaml").read_text())
    manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    write_manifest(folder, manifest)


@pytest.mark.parametrize("runtime", ["onnx", "openvino", *TORCH])
def test_graphs_that_break_the_contract_are_refused(runtime, tiny, task, tmp_path):
    larger = replace(
        task, observation=tuple(replace(i, shape=(9, 9, 3)) if i.kind == "image" else i for i in task.observation)
    )
    fewer = replace(task, observation=task.observation[1:])
    cases = [
        ("strong_encoder.onnx", encoder_model(larger), r"input 'third_person' is uint8 \(2, 9, 9, 3\)"),
        ("weak_encoder.onnx", encoder_model(fewer), "has the inputs"),
        (
            "strong_denoiser.onnx",
            denoiser_model(replace(task, horizon=8), 0.1),
            r"input 'sample' is float32 \(None, 8, 10\)",
        ),
        (
            "weak_denoiser.onnx",
            denoiser_model(fewer, 0.1),
            r"input 'condition' is float32 \(1, 11\); valid .*\(1, 12\)",
        ),
    ]
    for name, model, match in cases:
        folder = shutil.copytree(tiny, tmp_path / name)
        swap(folder, name, model)
        with pytest.raises(BundleError, match=f"graph {name}.*{match}"):
            DiffusionPolicy(load_bundle(folder, task), task, runtime=runtime)
