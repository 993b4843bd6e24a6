"""Denoising of action chunks. NumPy only: the network is a function argument.

Sources: Song et al., "Denoising Diffusion Implicit Models", ICLR 2021, Eq. 12 with eta = 0 (deterministic);
Song et al., "Consistency Models", ICML 2023, Algorithm 1 (multistep sampling);
Nichol & Dhariwal, "Improved Denoising Diffusion Probabilistic Models", ICML 2021, Eq. 17 (noise schedule);
Lin et al., "Common Diffusion Noise Schedules and Sample Steps are Flawed", WACV 2024 (trailing steps).

================  ==========================================================================
paper             here
================  ==========================================================================
T, S              ``train_steps``, ``sampling_steps``
alpha_t           ``cumulative_alphas(T)[t]`` (Song's alpha is the cumulative product, alpha-bar elsewhere)
x_t, f_theta      ``sample``, ``clean`` (the predicted x_0)
eps_theta         the network's output where ``prediction`` is ``epsilon``
================  ==========================================================================
"""

from collections.abc import Callable
from typing import Annotated, Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.settings import Positive, Share, settings
from bid_ros.decoding import StartMode

BetaSchedule = Literal["squaredcos_cap_v2"]
Prediction = Literal["epsilon", "sample"]
Spacing = Literal["trailing", "leading"]
SamplerName = Literal["ddim", "consistency"]
START_MODES: Final = get_args(StartMode)

Samples = NDArray[np.float32]
# Takes the samples (N, H, D) and the training time step (1,), returns the network's prediction (N, H, D).
Denoise = Callable[[Samples, NDArray[np.int64]], Samples]


@settings(error=BundleError)
class DiffusionConfig:
    """Settings of the noise in training and of the sampling.

    Attributes:
        train_steps: T, noise levels in training.
        beta_schedule: ``squaredcos_cap_v2``, the cosine schedule with betas of at most 0.999.
        prediction: what the network returns: ``epsilon`` (the noise) or ``sample`` (the clean chunk).
        sampling_steps: S, network calls a sample.
        clip: the predicted clean chunk is clipped to [-clip, clip], in normalised units.
        spacing: ``trailing`` starts at T - 1, which is pure noise (preferred). ``leading`` counts from 0 up in equal
            strides and starts below T - 1, as the published Diffusion Policy does.
        renoise_strength: share of the S steps that a ``renoise`` start goes through. At 1 the start is nearly pure
            noise: almost nothing of the signal is left at T - 1.
        sampler: ``ddim``, or ``consistency`` for a network that was distilled to return a clean chunk at once.

    Raises:
        BundleError: a value is outside its range.
    """

    train_steps: Annotated[int, Field(ge=1, le=10_000)] = 100
    beta_schedule: BetaSchedule = "squaredcos_cap_v2"
    prediction: Prediction = "sample"
    sampling_steps: Annotated[int, Field(ge=1)] = 8
    clip: Positive = 1.0
    spacing: Spacing = "trailing"
    renoise_strength: Share = 0.5
    sampler: SamplerName = "ddim"

    def __post_init__(self) -> None:
        if self.sampling_steps > self.train_steps:
            raise BundleError(
                f"diffusion: sampling_steps is {self.sampling_steps}; valid is up to train_steps {self.train_steps}"
            )


def cumulative_alphas(train_steps: int) -> NDArray[np.float64]:
    """Return ``(T,)``: share of the signal's power that is left at each training time step (Nichol & Dhariwal, Eq. 17).

    Betas are capped at 0.999, so the last value is tiny instead of 0 (``squaredcos_cap_v2``).
    """
    level = np.cos((np.arange(train_steps + 1) / train_steps + 0.008) / 1.008 * np.pi / 2) ** 2
    betas = np.minimum(1 - level[1:] / level[:-1], 0.999)
    alphas: NDArray[np.float64] = np.cumprod(1 - betas)
    return alphas


def sampling_timesteps(config: DiffusionConfig) -> list[int]:
    """Return the S training time steps that sampling visits, noisiest first."""
    total, count = config.train_steps, config.sampling_steps
    if config.spacing == "trailing":
        return [round(total - index * total / count) - 1 for index in range(count)]
    return [index * (total // count) for index in reversed(range(count))]


class Step(NamedTuple):
    """Factors of one step: clean = from_sample x + from_output f; next x = keep x + add clean."""

    timestep: NDArray[np.int64]
    signal: float
    noise: float
    from_sample: float
    from_output: float
    keep: float
    add: float


class Sampler:
    """Samples chunks in S steps. All coefficients are computed once. It keeps no state between calls.

    ``ddim`` is deterministic: the first noise decides. ``consistency`` adds fresh noise between its steps.

    Attributes:
        noises: number of noise arrays it needs for each sample: 1, or S for ``consistency``.
        steps: what it computes, noisiest first.
        limit: predicted clean chunks are clipped to [-limit, limit].
        fresh: whether each step but the first begins with fresh noise, as those of ``consistency`` do.
    """

    def __init__(self, config: DiffusionConfig) -> None:
        self._config, self.limit = config, config.clip
        self.fresh = config.sampler == "consistency"
        self.noises = config.sampling_steps if self.fresh else 1
        alphas = cumulative_alphas(config.train_steps)
        visited = sampling_timesteps(config)
        following = [alphas[step] for step in visited[1:]] + [1.0]
        self.steps = tuple(
            _coefficients(step, alphas[step], after, config.prediction)
            for step, after in zip(visited, following, strict=True)
        )
        self._renoise_from = len(visited) - max(1, round(config.renoise_strength * len(visited)))

    def run(
        self,
        denoise: Denoise,
        noise: Samples,
        start: NDArray[np.float32] | None = None,
        start_mode: StartMode = "noise",
    ) -> Samples:
        """Denoise N chunks. Arrays of PyTorch do as well, so that a graph can hold the whole sampling.

        1. Start from ``noise``; or from the trajectory ``start`` in place of a sample at full noise (``clean``, the
           published warm start: all samples start alike, and DDIM is deterministic, so they end alike); or from
           ``start`` diffused forward (Song Eq. 4) by ``renoise_strength`` of the steps (``renoise``).
        2. In each step, predict the clean chunk (Song Eq. 9) and clip it.
        3. Compute the sample at the next, lower noise level. ``ddim``: with the noise of the clipped chunk (Song Eq.
           12, eta = 0). ``consistency``: diffuse the chunk forward with the next fresh noise (Song et al. 2023,
           Algorithm 1). The last step has noise level 0 and returns the predicted clean chunk.

        Args:
            denoise: the network.
            noise: ``(noises, N, H, D)`` standard normal; not modified. A later start leaves the last ones unused.
            start: ``(H, D)``, normalised; needed unless ``start_mode`` is ``noise``.
            start_mode: start of the sampling.

        Returns:
            ``(N, H, D)`` normalised chunks within [-clip, clip], float32.

        Raises:
            DecodingError: the mode is unknown, or the start is missing or has another shape than ``(H, D)``.
        """
        sample, steps = self._start(noise[0], start, start_mode)
        limit, predicts_noise = self.limit, self._config.prediction == "epsilon"
        for index, step in enumerate(steps):
            output = denoise(sample, step.timestep)
            clean = step.from_output * output
            if predicts_noise:
                clean += step.from_sample * sample
            clean = clean.clip(-limit, limit)
            if self.fresh and step is not steps[-1]:
                after = steps[index + 1]
                sample = after.signal * clean + after.noise * noise[index + 1]
            else:
                sample = step.keep * sample
                sample += step.add * clean
        return sample

    def _start(
        self, noise: Samples, start: NDArray[np.float32] | None, mode: StartMode
    ) -> tuple[Samples, tuple[Step, ...]]:
        if mode not in START_MODES:
            raise DecodingError(f"start mode is '{mode}'; valid are {', '.join(START_MODES)}")
        if mode == "noise":
            return noise, self.steps
        if start is None or start.shape != noise.shape[1:]:
            shape = None if start is None else start.shape
            raise DecodingError(f"start mode '{mode}' got a start of shape {shape}; valid is {noise.shape[1:]}")
        if mode == "clean":
            return np.ascontiguousarray(np.broadcast_to(start, noise.shape)), self.steps
        steps = self.steps[self._renoise_from :]
        return steps[0].signal * start + steps[0].noise * noise, steps


def _coefficients(step: int, alpha: float, after: float, prediction: Prediction) -> Step:
    """Fold Eqs. 9 and 12 into factors. float64, because they divide by a signal that is nearly 0."""
    signal, noise = np.sqrt(alpha), np.sqrt(1 - alpha)
    keep = np.sqrt(1 - after) / noise
    add = np.sqrt(after) - keep * signal
    from_sample, from_output = (1 / signal, -noise / signal) if prediction == "epsilon" else (0.0, 1.0)
    numbers = (float(np.float32(value)) for value in (signal, noise, from_sample, from_output, keep, add))
    return Step(np.array([step], dtype=np.int64), *numbers)
