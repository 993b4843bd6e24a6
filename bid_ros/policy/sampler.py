"""Denoising of action chunks by DDIM. NumPy only: the network is a function argument.

Sources: Song et al., "Denoising Diffusion Implicit Models", ICLR 2021, Eq. 12 with eta = 0 (deterministic);
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

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from bid_ros.checks import check_positive
from bid_ros.decoding import StartMode
from bid_ros.errors import BundleError, DecodingError

BetaSchedule = Literal["squaredcos_cap_v2"]
Prediction = Literal["epsilon", "sample"]
Spacing = Literal["trailing", "leading"]
START_MODES: Final = get_args(StartMode)

Samples = NDArray[np.float32]
# Takes the samples (N, H, D) and the training time step (1,), returns the network's prediction (N, H, D).
Denoise = Callable[[Samples, NDArray[np.int64]], Samples]


@dataclass(frozen=True)
class DiffusionConfig:
    """How a policy was trained to denoise and how it is sampled.

    Attributes:
        train_steps: T, noise levels in training.
        beta_schedule: ``squaredcos_cap_v2``, the cosine schedule with betas of at most 0.999.
        prediction: what the network returns: ``epsilon`` (the noise) or ``sample`` (the clean chunk).
        sampling_steps: S, network calls a sample.
        clip: the predicted clean chunk is clipped to [-clip, clip], in normalised units.
        spacing: ``trailing`` starts at T - 1, pure noise, as sampling does (preferred); ``leading`` counts from 0 up
            in equal strides and so starts below T - 1, as the published Diffusion Policy does.
        renoise_strength: share of the S steps that a ``renoise`` start goes through. At 1 the start is as good as
            pure noise, since next to nothing of the signal is left at T - 1.

    Raises:
        BundleError: for a value outside its range.
    """

    train_steps: int = 100
    beta_schedule: BetaSchedule = "squaredcos_cap_v2"
    prediction: Prediction = "sample"
    sampling_steps: int = 8
    clip: float = 1.0
    spacing: Spacing = "trailing"
    renoise_strength: float = 0.5

    def __post_init__(self) -> None:
        for name, valid in (("beta_schedule", BetaSchedule), ("prediction", Prediction), ("spacing", Spacing)):
            if getattr(self, name) not in get_args(valid):
                raise BundleError(
                    f"diffusion: {name} is '{getattr(self, name)}'; valid are {', '.join(get_args(valid))}"
                )
        _check_count("train_steps", self.train_steps, 1, 10_000)
        _check_count("sampling_steps", self.sampling_steps, 1, self.train_steps)
        check_positive("diffusion", "clip", self.clip, BundleError)
        if not 0 < self.renoise_strength <= 1:
            raise BundleError(f"diffusion: renoise_strength is {self.renoise_strength}; valid is above 0 and up to 1")


def _check_count(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BundleError(f"diffusion: {name} is {value}; valid is a whole number from {least} to {most}")


def cumulative_alphas(train_steps: int) -> NDArray[np.float64]:
    """Return ``(T,)``: share of the signal's power left at each training time step (Nichol & Dhariwal, Eq. 17).

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


class _Step(NamedTuple):
    """One step's numbers: clean = from_sample x + from_output f; next x = keep x + add clean."""

    timestep: NDArray[np.int64]
    signal: np.float32
    noise: np.float32
    from_sample: np.float32
    from_output: np.float32
    keep: np.float32
    add: np.float32


class DdimSampler:
    """Deterministic sampler with every coefficient computed once. It keeps nothing between calls."""

    def __init__(self, config: DiffusionConfig) -> None:
        self._config = config
        alphas = cumulative_alphas(config.train_steps)
        visited = sampling_timesteps(config)
        following = [alphas[step] for step in visited[1:]] + [1.0]
        self._steps = tuple(
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
        """Denoise N chunks.

        1. The starting samples: ``noise``; or the trajectory ``start`` itself taken for a sample at full noise
           (``clean``, as the published warm start; every sample then starts alike and, DDIM being deterministic,
           ends alike); or ``start`` diffused forward (Song Eq. 4) by ``renoise_strength`` of the steps (``renoise``).
        2. For each step, the predicted clean chunk (Song Eq. 9), clipped.
        3. The sample at the next, lower noise level (Song Eq. 12, eta = 0), with the noise that belongs to the
           clipped chunk. The last step goes to noise level 0 and so returns the predicted clean chunk.

        Args:
            denoise: the network.
            noise: ``(N, H, D)`` standard normal; not modified.
            start: ``(H, D)``, normalised; needed unless ``start_mode`` is ``noise``.
            start_mode: where sampling starts.

        Returns:
            ``(N, H, D)`` normalised chunks within [-clip, clip], float32.

        Raises:
            DecodingError: for an unknown mode or a start that is missing or of another shape than ``(H, D)``.
        """
        sample, steps = self._start(noise, start, start_mode)
        limit, predicts_noise = self._config.clip, self._config.prediction == "epsilon"
        for step in steps:
            output = denoise(sample, step.timestep)
            clean = step.from_output * output
            if predicts_noise:
                clean += step.from_sample * sample
            np.clip(clean, -limit, limit, out=clean)
            sample = step.keep * sample
            sample += step.add * clean
        return sample

    def _start(
        self, noise: Samples, start: NDArray[np.float32] | None, mode: StartMode
    ) -> tuple[Samples, tuple[_Step, ...]]:
        if mode not in START_MODES:
            raise DecodingError(f"start mode is '{mode}'; valid are {', '.join(START_MODES)}")
        if mode == "noise":
            return noise, self._steps
        if start is None or start.shape != noise.shape[1:]:
            shape = None if start is None else start.shape
            raise DecodingError(f"start mode '{mode}' got a start of shape {shape}; valid is {noise.shape[1:]}")
        if mode == "clean":
            return np.ascontiguousarray(np.broadcast_to(start, noise.shape)), self._steps
        steps = self._steps[self._renoise_from :]
        return steps[0].signal * start + steps[0].noise * noise, steps


def _coefficients(step: int, alpha: float, after: float, prediction: Prediction) -> _Step:
    """Fold Eqs. 9 and 12 into factors, in float64: the division by a nearly vanished signal needs the digits."""
    signal, noise = np.sqrt(alpha), np.sqrt(1 - alpha)
    keep = np.sqrt(1 - after) / noise
    add = np.sqrt(after) - keep * signal
    from_sample, from_output = (1 / signal, -noise / signal) if prediction == "epsilon" else (0.0, 1.0)
    numbers = (np.float32(value) for value in (signal, noise, from_sample, from_output, keep, add))
    return _Step(np.array([step], dtype=np.int64), *numbers)
