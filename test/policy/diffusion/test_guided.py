"""Guided denoising: the published formula, and the gradient of a real network."""

import numpy as np
import pytest
from installed import TORCH

from bid_ros.core.errors import DecodingError
from bid_ros.decoding import Guidance
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.guided import guidance_scales, guided
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler

H, D = 16, 10
needs_torch = pytest.mark.skipif(not TORCH, reason="gradients need PyTorch")


class Linear:
    """A network whose output is a matrix times the sample, so that its Jacobian is known."""

    def __init__(self, size, seed=0):
        self.matrix = 0.3 * np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)

    def run(self, sample):
        return (sample.reshape(len(sample), -1) @ self.matrix.T).reshape(sample.shape)

    def linearise(self, feeds, name):
        assert name == "sample"
        return self.run(feeds["sample"]), lambda pull: (pull.reshape(len(pull), -1) @ self.matrix).reshape(pull.shape)


@pytest.mark.parametrize("prediction", ["sample", "epsilon"])
@pytest.mark.parametrize("name", ["ddim", "consistency"])
def test_a_step_moves_as_the_flow_of_the_paper_does(prediction, name):
    """Eqs. 2 to 4 for A = x / (signal + noise), written as in the paper: with velocities and a numerical Jacobian.

    What counts is by how much the guidance moves the next A: by (tau' - tau) times the change of the velocity.
    """
    sampler = Sampler(DiffusionConfig(prediction=prediction, sampling_steps=4, clip=1e6, sampler=name))
    network, beta, rows, columns = Linear(6), 5.0, 3, 2
    rng = np.random.default_rng(1)
    target, weights = rng.standard_normal((rows, columns)), np.array([1.0, 0.4, 0.0])
    denoise = guided(network, np.zeros((1, 1), np.float32), sampler, target, weights, beta)
    for step, after in zip(sampler.steps[1:], [*sampler.steps[2:], None], strict=True):
        flow, total = rng.standard_normal((1, rows, columns)), step.signal + step.noise

        def clean(flow, output=network.run, step=step, total=total):
            sample = (flow * total).astype(np.float32)
            return step.from_sample * sample + step.from_output * output(sample)

        tau = step.signal / total
        numbers = np.eye(rows * columns).reshape(-1, 1, rows, columns)
        jacobian = np.stack([((clean(flow + e) - clean(flow - e)) / 2).ravel() for e in numbers], axis=1)
        wanted = (weights[:, None] * (target - clean(flow))).ravel()
        squared = (1 - tau) ** 2 / (tau**2 + (1 - tau) ** 2)
        change = min(beta, (1 - tau) / (tau * squared)) * (jacobian.T @ wanted).reshape(1, rows, columns)
        sample, fresh = (flow * total).astype(np.float32), rng.standard_normal((1, rows, columns))
        following = 1.0 if after is None else after.signal / (after.signal + after.noise)

        def next_flow(output, step=step, after=after, sample=sample, fresh=fresh):
            guess = step.from_sample * sample + step.from_output * output
            if after is None:
                return guess
            anew, moved = after.signal * guess + after.noise * fresh, step.keep * sample + step.add * guess
            return (anew if name == "consistency" else moved) / (after.signal + after.noise)

        found = next_flow(denoise(sample, step.timestep)) - next_flow(network.run(sample))
        np.testing.assert_allclose(found, (following - tau) * change, rtol=2e-3, atol=2e-3)


def test_where_the_clean_chunk_is_clipped_nothing_pulls():
    sampler = Sampler(DiffusionConfig(prediction="sample", sampling_steps=2, clip=1.0))
    network = Linear(4)
    network.matrix = np.eye(4, dtype=np.float32)
    sample = np.array([[[0.5, 3.0], [-3.0, -0.5]]], np.float32)
    denoise = guided(network, np.zeros((1, 1), np.float32), sampler, np.zeros((2, 2)), np.ones(2), 5.0)
    moved = denoise(sample, sampler.steps[1].timestep) - sample
    assert (moved != 0).tolist() == [[[True, False], [False, True]]]


def test_the_clip_bounds_the_noisiest_steps_not_those_between():
    sampler = Sampler(DiffusionConfig(sampling_steps=8))
    unbounded, bounded = (guidance_scales(sampler, clip) for clip in (np.inf, 5.0))
    assert bounded[0] < 0.01 * unbounded[0]
    assert bounded[4] == unbounded[4]


@pytest.fixture(scope="module")
def derivable(tiny, task):
    return DiffusionPolicy(load_bundle(tiny, task), task, "torch")


def pulled(policy, observe, weights, target, clip=5.0, seed=0):
    guidance = None if target is None else Guidance(target, weights, clip)
    encoded = policy.encode(observe(), weak=False)
    return policy.sample(encoded, 4, 0, np.random.default_rng(seed), guidance=guidance)[0]


@needs_torch
def test_a_real_network_is_drawn_towards_the_target_by_its_true_gradient(derivable, observe):
    free = pulled(derivable, observe, None, None)
    weights = np.repeat([1.0, 0.0], H // 2)
    target = free[0] + np.eye(D)[0] * 0.02
    chunks = [free, *(pulled(derivable, observe, weights, target, clip) for clip in (5.0, 10.0))]
    apart = [np.abs(chunk[..., 0] - target[:, 0])[:, : H // 2].mean() for chunk in chunks]
    assert apart[2] < apart[1] < 0.97 * apart[0]
    np.testing.assert_array_equal(pulled(derivable, observe, np.zeros(H), target), free)


@needs_torch
def test_the_gradient_is_that_of_finite_differences(derivable):
    denoiser = derivable._strong.denoiser
    rng = np.random.default_rng(0)
    condition = rng.standard_normal((1, denoiser.inputs["condition"].shape[-1]), dtype=np.float32)
    feeds = {"sample": rng.standard_normal((2, H, D), dtype=np.float32), "step": np.array([30]), "condition": condition}
    output, pull_back = denoiser.linearise(feeds, "sample")
    np.testing.assert_allclose(output, denoiser.run(feeds), atol=1e-6)
    pull, way = (rng.standard_normal((2, H, D), dtype=np.float32) for _ in range(2))
    ahead, behind = (denoiser.run({**feeds, "sample": feeds["sample"] + sign * 1e-2 * way}) for sign in (1, -1))
    slope = np.sum(pull * (ahead - behind)) / 2e-2
    assert np.sum(pull_back(pull) * way) == pytest.approx(slope, rel=2e-2, abs=1e-3)


@needs_torch
def test_the_gradient_is_warmed_up_with_the_rest(derivable, monkeypatch):
    denoiser, asked = derivable._strong.denoiser, []
    linearise = denoiser.linearise
    monkeypatch.setattr(denoiser, "linearise", lambda *given: (asked.append(given), linearise(*given))[1])
    derivable.warm_up(2)
    assert asked


def test_a_runtime_without_gradients_is_refused(policy, observe):
    with pytest.raises(DecodingError, match=r"guided samples need gradients, which runtime '.*' has not; valid: torch"):
        pulled(policy, observe, np.ones(H), np.zeros((H, D)))
