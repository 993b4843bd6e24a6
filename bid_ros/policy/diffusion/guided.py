"""Guided denoising: each step draws the predicted clean chunk towards a target (Real-Time Chunking).

Source: Black, Galliker, Levine, "Real-Time Execution of Action Chunking Flow Policies", NeurIPS 2025, Eqs. 2 to 4, for
flow matching with the velocity v. A sample x = signal * clean + noise * eps of a diffusion policy is the flow's, A,
times (signal + noise), at the flow's time tau = signal / (signal + noise). So the same guidance holds here:

    v'     = v + min(beta, (1 - tau) / (tau r^2)) g,   r^2 = (1 - tau)^2 / (tau^2 + (1 - tau)^2)
    clean' = clean + (1 - tau) (v' - v)
    g      = (d clean / d A)^T W (target - clean) = (signal + noise) (d clean / d x)^T W (target - clean)

The flow's step to the time tau' moves A by (tau' - tau) v', and so does a step of DDIM with clean'. A step of
consistency sampling begins anew with fresh noise: it moves A by tau' clean'. There clean' = clean + (tau' - tau) / tau'
(v' - v) moves it by as much.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bid_ros.policy.diffusion.sampler import Denoise, Sampler, Samples

PullBack = Callable[[Samples], Samples]
"""From a cotangent of the output, its shape, to the gradient with respect to the input."""


@runtime_checkable
class Differentiable(Protocol):
    """A graph that can be derived."""

    def linearise(self, feeds: Mapping[str, NDArray[Any]], name: str) -> tuple[NDArray[Any], PullBack]:
        """Return the output of a call, and the vector-Jacobian product with respect to the input ``name``."""


def guided(
    denoiser: Differentiable,
    condition: NDArray[np.float32],
    sampler: Sampler,
    target: NDArray[np.floating],
    weights: NDArray[np.floating],
    clip: float,
    further: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> Denoise:
    """Return a denoiser whose predicted clean chunks are drawn towards a target.

    Args:
        denoiser: the network.
        condition: ``(1, C)``, of the observation.
        sampler: that will call what is returned.
        target: ``(H, D)``, normalised.
        weights: ``(H,)``, W.
        clip: beta.
        further: other inputs of the network.
    """
    scales = guidance_scales(sampler, clip)
    visited = {int(step.timestep[0]): (step, scale) for step, scale in zip(sampler.steps, scales, strict=True)}
    goal, row_weights = np.asarray(target, dtype=np.float32), np.asarray(weights, dtype=np.float32)[:, None]

    def denoise(sample: Samples, timestep: NDArray[np.int64]) -> Samples:
        step, scale = visited[int(timestep[0])]
        feeds: dict[str, NDArray[Any]] = {
            "sample": np.ascontiguousarray(sample),
            "step": timestep,
            "condition": condition,
            **further,
        }
        output, pull_back = denoiser.linearise(feeds, "sample")
        predicted = step.from_sample * sample + step.from_output * output
        clean = predicted.clip(-sampler.limit, sampler.limit)
        # Where the clean chunk is clipped, it does not change with the sample.
        pull = row_weights * (goal - clean) * (predicted == clean)
        gradient = step.from_sample * pull + step.from_output * pull_back(pull)
        return np.asarray(output + scale / step.from_output * gradient, dtype=np.float32)

    return denoise


def guidance_scales(sampler: Sampler, clip: float) -> list[float]:
    """Return by how much of ``(d clean / d x)^T W (target - clean)`` the clean chunk of each step moves."""
    totals = [step.signal + step.noise for step in sampler.steps]
    times = [step.signal / total for step, total in zip(sampler.steps, totals, strict=True)]
    scales = []
    for tau, after, total in zip(times, [*times[1:], 1.0], totals, strict=True):
        spread = (1 - tau) ** 2 / (tau**2 + (1 - tau) ** 2)
        reach = (after - tau) / after if sampler.fresh else 1 - tau
        strength = min(clip, (1 - tau) / (tau * spread)) if tau else clip  # a flow begins at the time 0
        scales.append(strength * reach * total)
    return scales
