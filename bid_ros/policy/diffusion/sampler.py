"""Denoising of action chunks. NumPy only: the network is a function argument.

Sources: Song et al., "Denoising Diffusion Implicit Models", ICLR 2021, Eq. 12 with eta = 0 (deterministic);
Ho et al., "Denoising Diffusion Probabilistic Models", NeurIPS 2020, Eqs. 6 and 7 (fresh noise after each step);
Lipman et al., "Flow Matching for Generative Modeling", ICLR 2023, Eqs. 22 and 23 (straight paths), Euler's method;
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

import math
from collections.abc import Callable
from typing import Annotated, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.settings import Positive, Share, settings
from bid_ros.decoding import StartMode
from bid_ros.policy.diffusion.steps import CALLS, Step, diffusion_steps, flow_steps, runge_kutta

BetaSchedule = Literal["squaredcos_cap_v2", "linear"]
Prediction = Literal["epsilon", "sample", "velocity"]
Spacing = Literal["trailing", "leading"]
SamplerName = Literal["ddim", "consistency", "ddpm", "flow"]
KeptNoise = Literal["clipped", "predicted"]
Integration = Literal["euler", "rk4"]
START_MODES: Final = get_args(StartMode)

Samples = NDArray[np.float32]
# Takes the samples (N, H, D) and the training time step (1,), returns the network's prediction (N, H, D).
Denoise = Callable[[Samples, NDArray[np.int64]], Samples]


@settings(error=BundleError)
class DiffusionConfig:
    """Settings of the noise in training and of the sampling.

    Attributes:
        train_steps: T, noise levels in training. Of ``flow``: the step 0 to T - 1 stands for the time step / T.
        beta_schedule: ``squaredcos_cap_v2``, the cosine schedule with betas of at most 0.999, or ``linear``.
        prediction: what the network returns: ``epsilon`` (the noise), ``sample`` (the clean chunk) or, of ``flow``,
            ``velocity`` (the clean chunk less the noise).
        sampling_steps: S, steps of a sample: a network call each, or four with ``rk4``.
        clip: the predicted clean chunk is clipped to [-clip, clip], in normalised units. None: it is not clipped.
        spacing: ``trailing`` starts at T - 1, which is pure noise (preferred). ``leading`` counts from 0 up in equal
            strides and starts below T - 1, as the published Diffusion Policy does.
        renoise_strength: share of the S steps that a ``renoise`` start goes through. At 1 the start is nearly pure
            noise: almost nothing of the signal is left at T - 1.
        sampler: ``ddim``; ``consistency`` for a network that was distilled to return a clean chunk at once; ``ddpm``,
            which adds fresh noise after each step; or ``flow``, from noise at time 0 to the chunk at 1.
        beta_start, beta_end: first and last beta of the schedule ``linear``.
        kept_noise: what a step of ``ddim`` keeps where the clean chunk was clipped: the noise that fits the
            ``clipped`` chunk (preferred), or the ``predicted`` noise, as the published Diffusion Policy does.
        integration: of ``flow``: Euler's method, or ``rk4``, see :func:`bid_ros.policy.diffusion.steps.runge_kutta`.
            The latter clips nothing, and its samples cannot be guided.
        simulated_delay: the longest delay, in steps, that training simulated: by so much a policy knows what is
            executed meanwhile, see :mod:`bid_ros.policy.committed`. 0: none.
        roll_forward: it knows that from the observed state, which is rolled forward. Otherwise the executed rows are
            given.

    Raises:
        BundleError: a value is outside its range.
    """

    train_steps: Annotated[int, Field(ge=1, le=10_000)] = 100
    beta_schedule: BetaSchedule = "squaredcos_cap_v2"
    prediction: Prediction = "sample"
    sampling_steps: Annotated[int, Field(ge=1)] = 8
    clip: Positive | None = 1.0
    spacing: Spacing = "trailing"
    renoise_strength: Share = 0.5
    sampler: SamplerName = "ddim"
    beta_start: Share = 1e-4
    beta_end: Share = 0.02
    kept_noise: KeptNoise = "clipped"
    integration: Integration = "euler"
    simulated_delay: Annotated[int, Field(ge=0)] = 0
    roll_forward: bool = False

    @property
    def clean_step(self) -> int | None:
        """Training time step of rows that are given clean, next to the least noisy one. None: none are given."""
        if not self.simulated_delay or self.roll_forward:
            return None
        return self.train_steps if self.sampler == "flow" else -1

    @property
    def calls(self) -> int:
        """Network calls a sample."""
        return self.sampling_steps * (CALLS if self.integration == "rk4" else 1)

    @property
    def limit(self) -> float:
        """Predicted clean chunks lie in [-limit, limit]; infinite where nothing is clipped."""
        return math.inf if self.clip is None else self.clip

    def __post_init__(self) -> None:
        if (self.sampler == "flow") != (self.prediction == "velocity"):
            raise BundleError(
                f"diffusion: sampler '{self.sampler}' has prediction '{self.prediction}'; valid is 'velocity' for "
                "sampler 'flow', and another prediction for every other sampler"
            )
        if self.sampler == "flow" and self.train_steps % self.sampling_steps:
            raise BundleError(
                f"diffusion: sampling_steps of a flow is {self.sampling_steps}; valid is a divisor of train_steps, "
                f"{self.train_steps}"
            )
        if self.roll_forward and not self.simulated_delay:
            raise BundleError("diffusion: roll_forward is true with simulated_delay 0; valid is a delay of 1 or more")
        stride = self.train_steps // self.sampling_steps
        if self.integration == "rk4" and (self.sampler != "flow" or self.clip is not None or stride % 2):
            raise BundleError(
                "diffusion: integration is 'rk4'; it needs sampler 'flow', clip null, and an even number of "
                "train_steps a sampling step"
            )
        if self.sampling_steps > self.train_steps:
            raise BundleError(
                f"diffusion: sampling_steps is {self.sampling_steps}; valid is up to train_steps {self.train_steps}"
            )


def cumulative_alphas(
    train_steps: int, schedule: BetaSchedule = "squaredcos_cap_v2", beta_start: float = 1e-4, beta_end: float = 0.02
) -> NDArray[np.float64]:
    """Return ``(T,)``: share of the signal's power that is left at each training time step.

    ``squaredcos_cap_v2`` is Nichol & Dhariwal, Eq. 17. Betas are capped at 0.999, so the last value is tiny instead of
    0. ``linear`` is Ho et al., Section 4: betas in equal steps from ``beta_start`` to ``beta_end``.
    """
    betas: NDArray[np.float64]
    if schedule == "linear":
        betas = np.linspace(beta_start, beta_end, train_steps, dtype=np.float64)
    else:
        level = np.cos((np.arange(train_steps + 1) / train_steps + 0.008) / 1.008 * np.pi / 2) ** 2
        betas = np.minimum(1 - level[1:] / level[:-1], 0.999)
    return np.asarray(np.cumprod(1 - betas), dtype=np.float64)


def noise_levels(config: DiffusionConfig) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the factors ``(T,)`` of clean chunk and noise at each training time step.

    Diffusion keeps the sum of their squares at 1 (Ho Eq. 4), a flow the sum of them (Lipman Eq. 22).
    """
    if config.sampler == "flow":
        times = np.arange(config.train_steps) / config.train_steps
        return times, 1 - times
    alphas = cumulative_alphas(config.train_steps, config.beta_schedule, config.beta_start, config.beta_end)
    return np.sqrt(alphas), np.sqrt(1 - alphas)


def sampling_timesteps(config: DiffusionConfig) -> list[int]:
    """Return the S training time steps that sampling visits, noisiest first."""
    total, count = config.train_steps, config.sampling_steps
    if config.sampler == "flow":
        return [index * (total // count) for index in range(count)]
    if config.spacing == "trailing":
        return [round(total - index * total / count) - 1 for index in range(count)]
    return [index * (total // count) for index in reversed(range(count))]


class Sampler:
    """Samples chunks in S steps. All coefficients are computed once. It keeps no state between calls.

    ``ddim`` and ``flow`` are deterministic: the first noise decides. ``consistency`` and ``ddpm`` add fresh noise
    between their steps.

    Attributes:
        noises: number of noise arrays it needs for each sample: 1, or S for ``consistency`` and ``ddpm``.
        steps: what it computes, noisiest first.
        limit: predicted clean chunks are clipped to [-limit, limit].
        guides: whether a step is one network call, as guidance needs.
        fresh: whether each step but the first begins with fresh noise, as those of ``consistency`` do.
    """

    def __init__(self, config: DiffusionConfig) -> None:
        self._config, self.limit = config, config.limit
        self.fresh, self.guides = config.sampler == "consistency", config.integration == "euler"
        self.noises = config.sampling_steps if config.sampler in ("consistency", "ddpm") else 1
        visited = sampling_timesteps(config)
        self.steps = (
            flow_steps(visited, config.train_steps) if config.sampler == "flow" else _diffusion_steps(visited, config)
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
        3. Compute the sample at the next, lower noise level. ``ddim``: with the noise of the clipped chunk, or the
           predicted one (Song Eq. 12, eta = 0). ``consistency``: diffuse the chunk forward with the next fresh noise
           (Song et al. 2023, Algorithm 1). ``ddpm``: a normal distribution around a mean of sample and chunk (Ho Eqs. 6
           and 7). ``flow``: a step along the velocity. The last step has noise level 0 and returns
           the predicted clean chunk.

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
        if self._config.integration == "rk4":
            config, begins = self._config, (int(step.timestep[0]) for step in steps)
            stride = config.train_steps // config.sampling_steps
            return runge_kutta(denoise, sample, begins, stride, config.train_steps)
        limit, whole = self.limit, self._config.prediction == "sample"
        for index, step in enumerate(steps):
            output = denoise(sample, step.timestep)
            clean = step.from_output * output
            if not whole:
                clean += step.from_sample * sample
            if limit < math.inf:
                clean = clean.clip(-limit, limit)
            if self.fresh and step is not steps[-1]:
                after = steps[index + 1]
                sample = after.signal * clean + after.noise * noise[index + 1]
                continue
            sample = step.keep * sample
            sample += step.add * clean
            if step.carry:
                sample += step.carry * output
            if step.spread:
                sample += step.spread * noise[index + 1]
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


def _diffusion_steps(visited: list[int], config: DiffusionConfig) -> tuple[Step, ...]:
    alphas = cumulative_alphas(config.train_steps, config.beta_schedule, config.beta_start, config.beta_end)
    epsilon, clipped = config.prediction == "epsilon", config.kept_noise == "clipped"
    return diffusion_steps(visited, alphas, epsilon, config.sampler == "ddpm", clipped)
