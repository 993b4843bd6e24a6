"""Denoising schedules in Python, as the peers run them: one call a step, its coefficients computed anew each time.

Sources: Ho et al., "Denoising Diffusion Probabilistic Models", NeurIPS 2020, Eqs. 6, 7 and 15; Song et al., "Denoising
Diffusion Implicit Models", ICLR 2021, Eqs. 12 and 16. The steps are spaced as in the published Diffusion Policy: from
0 up, in equal strides (``leading``).
"""

from typing import Final

import torch

from bid_ros.policy.diffusion.sampler import DiffusionConfig, cumulative_alphas

_LEAST_VARIANCE: Final = 1e-20


class Scheduler:
    """What both schedules share.

    Args:
        config: noise of the training, prediction and clipping. Its sampler is not used.

    Attributes:
        timesteps: ``(S,)`` training time steps to visit, noisiest first.
    """

    def __init__(self, config: DiffusionConfig) -> None:
        self._config = config
        self._alphas = torch.from_numpy(cumulative_alphas(config.train_steps)).float()
        self._one = torch.tensor(1.0)
        self.set_timesteps(config.train_steps)

    def set_timesteps(self, steps: int) -> None:
        """Visit ``steps`` of the training time steps."""
        self._stride = self._config.train_steps // steps
        self.timesteps = torch.arange(steps).flip(0) * self._stride

    def _levels(self, timestep: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the cumulative alpha at a time step and at the one after it."""
        following = timestep - self._stride
        return self._alphas[timestep], self._alphas[following] if following >= 0 else self._one

    def _clean(
        self, output: torch.Tensor, sample: torch.Tensor, alpha: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the clean chunk, clipped, and the noise, that an output of the network stands for."""
        if self._config.prediction == "epsilon":
            clean, noise = (sample - (1 - alpha) ** 0.5 * output) / alpha**0.5, output
        else:
            clean, noise = output, (sample - alpha**0.5 * output) / (1 - alpha) ** 0.5
        return clean.clamp(-self._config.limit, self._config.limit), noise


class Ddpm(Scheduler):
    """Ancestral sampling."""

    def step(self, output: torch.Tensor, timestep: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        """Return the samples ``(N, H, D)`` at the next, lower noise level.

        Args:
            output: ``(N, H, D)``, the network's prediction.
            timestep: ``()``, of ``timesteps``.
            sample: ``(N, H, D)``, what was predicted from.
        """
        alpha, after = self._levels(timestep)
        kept = alpha / after
        clean, _ = self._clean(output, sample, alpha)
        mean = (after**0.5 * (1 - kept)) / (1 - alpha) * clean + kept**0.5 * (1 - after) / (1 - alpha) * sample
        if timestep == 0:
            return mean
        variance = ((1 - after) / (1 - alpha) * (1 - kept)).clamp(min=_LEAST_VARIANCE)
        return mean + variance**0.5 * torch.randn_like(output)


class Ddim(Scheduler):
    """Deterministic sampling (eta = 0). The noise is not computed anew from the clipped chunk."""

    def step(self, output: torch.Tensor, timestep: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        """Return the samples at the next, lower noise level, as :meth:`Ddpm.step`."""
        alpha, after = self._levels(timestep)
        clean, noise = self._clean(output, sample, alpha)
        deviation = 0.0 * ((1 - after) / (1 - alpha) * (1 - alpha / after)) ** 0.5  # eta times Eq. 16
        return after**0.5 * clean + (1 - after - deviation**2) ** 0.5 * noise
