"""The steps of a sampler, folded into factors of its input and of the network's output; and Runge's and Kutta's.

The equations are named in :mod:`bid_ros.policy.diffusion.sampler`. The classical method of Runge and Kutta: Hairer,
Nørsett, Wanner, "Solving Ordinary Differential Equations I", 2nd edition 1993, Section II.1, Table 1.2.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
CALLS: Final = 4  # a step of :func:`runge_kutta`


class Step(NamedTuple):
    """Factors of one step, of its input x and the network's output f.

    clean = clip(from_sample x + from_output f); next x = keep x + add clean + carry f + spread (fresh noise).
    """

    timestep: NDArray[np.int64]
    signal: float
    noise: float
    from_sample: float
    from_output: float
    keep: float
    add: float
    carry: float = 0.0
    spread: float = 0.0


def diffusion_steps(
    visited: Sequence[int], alphas: NDArray[np.float64], epsilon: bool, ancestral: bool, clipped: bool
) -> tuple[Step, ...]:
    """Return the steps of DDIM, DDPM and consistency sampling.

    Args:
        visited: training time steps, noisiest first.
        alphas: ``(T,)``, see :func:`bid_ros.policy.diffusion.sampler.cumulative_alphas`.
        epsilon: whether the network predicts the noise, else the clean chunk.
        ancestral: whether fresh noise is added after each step, as DDPM does.
        clipped: whether DDIM keeps the noise that fits the clipped chunk, else the predicted noise.
    """

    def factors(alpha: float, after: float) -> tuple[float, ...]:
        return _ancestral(alpha, after) if ancestral else _implicit(alpha, after, epsilon, clipped)

    following = [alphas[step] for step in visited[1:]] + [1.0]
    return tuple(
        _step(step, alphas[step], epsilon, factors(alphas[step], after))
        for step, after in zip(visited, following, strict=True)
    )


def _step(step: int, alpha: float, epsilon: bool, factors: tuple[float, ...]) -> Step:
    """Fold Song Eq. 9 into factors. float64, because it divides by a signal that is nearly 0."""
    signal, noise = np.sqrt(alpha), np.sqrt(1 - alpha)
    from_sample, from_output = (1 / signal, -noise / signal) if epsilon else (0.0, 1.0)
    return _rounded(step, (signal, noise, from_sample, from_output, *factors))


def _implicit(alpha: float, after: float, epsilon: bool, clipped: bool) -> tuple[float, ...]:
    """Fold Song Eq. 12 with eta = 0 into keep, add and carry."""
    signal, left = np.sqrt(alpha), np.sqrt(1 - after)
    keep = left / np.sqrt(1 - alpha)
    if clipped:
        return keep, np.sqrt(after) - keep * signal
    if epsilon:
        return 0.0, np.sqrt(after), left
    return keep, np.sqrt(after), -keep * signal


def _ancestral(alpha: float, after: float) -> tuple[float, ...]:
    """Fold Ho Eqs. 6 and 7 into keep, add, carry and spread; beta_t is that of the whole way between two visited steps.

    The variance is beta-tilde, the smaller of the two in Ho et al., Section 3.2.
    """
    beta = 1 - alpha / after
    keep = np.sqrt(alpha / after) * (1 - after) / (1 - alpha)
    add = np.sqrt(after) * beta / (1 - alpha)
    return keep, add, 0.0, np.sqrt((1 - after) / (1 - alpha) * beta)


def flow_steps(visited: Sequence[int], times: int) -> tuple[Step, ...]:
    """Write Euler's method as steps: x + dt v = x + dt / (1 - t) (clean - x), where clean = x + (1 - t) v.

    Args:
        visited: training time steps, noisiest first.
        times: training time steps of the time 1.
    """
    share = 1 / len(visited)
    steps = []
    for step in visited:
        time = step / times
        add = 1.0 if step == visited[-1] else share / (1 - time)
        steps.append(_rounded(step, (time, 1 - time, 1.0, 1 - time, 1 - add, add)))
    return tuple(steps)


def _rounded(step: int, factors: tuple[float, ...]) -> Step:
    return Step(np.array([step], dtype=np.int64), *(float(np.float32(value)) for value in factors))


def runge_kutta(
    velocity: Callable[[Samples, NDArray[np.int64]], Samples],
    sample: Samples,
    begins: Iterable[int],
    stride: int,
    times: int,
) -> Samples:
    """Follow a flow with four calls a step; return chunks ``(N, H, D)`` at the end of the steps.

    Args:
        velocity: of chunks at a training time step.
        sample: ``(N, H, D)`` at the first step; not modified. An array of PyTorch does as well.
        begins: training time steps at which steps begin.
        stride: training time steps of a step, an even number.
        times: training time steps of the time 1.
    """
    share = stride / times
    for first in begins:
        begin, middle, end = (np.array([first + part], dtype=np.int64) for part in (0, stride // 2, stride))
        one = velocity(sample, begin)
        two = velocity(sample + share / 2 * one, middle)
        three = velocity(sample + share / 2 * two, middle)
        four = velocity(sample + share * three, end)
        sample = sample + share / 6 * (one + 2 * two + 2 * three + four)
    return sample
