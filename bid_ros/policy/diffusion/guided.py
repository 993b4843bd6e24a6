"""Guided denoising: each step draws the predicted clean chunk towards a target (Real-Time Chunking).

Source: Black, Galliker, Levine, "Real-Time Execution of Action Chunking Flow Policies", NeurIPS 2025, Eqs. 2 to 4, for
flow matching with the velocity v. A sample x = signal * clean + noise * eps of a diffusion policy is the flow's, A,
times (signal + noise), at the flow's time tau = signal / (signal + noise). So the same guidance holds here:

    v'     = v + min(beta, (1 - tau) / (tau r^2)) g,   r^2 = (1 - tau)^2 / (tau^2 + (1 - tau)^2)
    clean' = clean + (1 - tau) (v' - v)
    g      = (d clean / d A)^T W (target - clean) = (signal + noise) (d clean / d x)^T W (target - clean)
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bid_ros.policy.diffusion.sampler import Denoise, Sampler, Samples, Step

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
) -> Denoise:
    """Return a denoiser whose predicted clean chunks are drawn towards a target.

    Args:
        denoiser: the network.
        condition: ``(1, C)``, of the observation.
        sampler: that will call what is returned.
        target: ``(H, D)``, normalised.
        weights: ``(H,)``, W.
        clip: beta.
    """
    visited = {int(step.timestep[0]): step for step in sampler.steps}
    goal, row_weights = np.asarray(target, dtype=np.float32), np.asarray(weights, dtype=np.float32)[:, None]

    def denoise(sample: Samples, timestep: NDArray[np.int64]) -> Samples:
        step = visited[int(timestep[0])]
        feeds: dict[str, NDArray[Any]] = {
            "sample": np.ascontiguousarray(sample),
            "step": timestep,
            "condition": condition,
        }
        output, pull_back = denoiser.linearise(feeds, "sample")
        predicted = step.from_sample * sample + step.from_output * output
        clean = predicted.clip(-sampler.limit, sampler.limit)
        pull = (
            row_weights * (goal - clean) * (predicted == clean)
        )  # where the clean chunk is clipped it does not change
        gradient = step.from_sample * pull + step.from_output * pull_back(pull)
        return np.asarray(output + guidance_scale(step, clip) / step.from_output * gradient, dtype=np.float32)

    return denoise


def guidance_scale(step: Step, clip: float) -> float:
    """Return by how much of ``(d clean / d x)^T W (target - clean)`` a step's clean chunk moves."""
    signal, noise = step.signal, step.noise
    tau = signal / (signal + noise)
    spread = (1 - tau) ** 2 / (tau**2 + (1 - tau) ** 2)
    return min(clip, (1 - tau) / (tau * spread)) * (1 - tau) * (signal + noise)
