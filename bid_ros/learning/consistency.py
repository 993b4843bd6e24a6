"""Consistency distillation: a student that samples a chunk in a few denoising steps instead of the teacher's many.

Source: Song et al., "Consistency Models", ICML 2023, Algorithm 2, with the teacher's own DDIM step as the solver.

================  ==========================================================================
paper             here
================  ==========================================================================
f_theta           ``student``: it returns the clean chunk from any noise level
f_theta-          the student's own weights without a gradient: no moving average (mu = 0)
phi               ``teacher``, and one DDIM step of it from a level to the next (:class:`Sampler`)
N, t_n            ``levels``: the noise levels that the DDIM steps visit
lambda(t_n)       1 at every level: the loss is in units of the clean chunk
================  ==========================================================================
"""

import copy
import math
from dataclasses import replace
from typing import Annotated, Final

import torch
from pydantic import Field

from bid_ros.core.errors import BidError
from bid_ros.core.settings import Count, Share, settings
from bid_ros.learning.config import Batch
from bid_ros.learning.denoiser import Denoiser
from bid_ros.learning.trainer import Descent, seed_of
from bid_ros.learning.windows import batch_windows
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler

MOST_KEPT: Final = 0.999  # of the averaged weights' past
FACTORS: Final = ("signal", "noise", "from_sample", "from_output", "keep", "add")


@settings
class DistillConfig:
    """One distillation. The same configuration, data, machine and thread count give the same weights.

    Attributes:
        sampling_steps: S of the student, denoising steps a sample.
        levels: noise levels that the teacher's DDIM visits, a multiple of ``sampling_steps``. With as many as the
            teacher has steps, the student learns what the teacher samples.
        steps: optimiser steps for each of the strong and the weak student.
        batch: windows a step.
        seed: seed of order and noise.
        learning_rate: peak. It falls along a cosine to 0.
        imitation: share of the steps in which a student whose first weights return something else, such as noise,
            learns to return the teacher's clean chunk.
        share_encoder: whether the weak student uses the strong policy's encoder, so that a decision encodes once. It
            then begins with the weights of the strong student.
        ema_power: the averaged weights keep ``1 - (1 + step) ** -ema_power`` of their past, at most 0.999.

    Raises:
        BidError: for a value outside its range.
    """

    sampling_steps: Annotated[int, Field(ge=1, le=100)] = 2
    levels: Annotated[int, Field(ge=2, le=1000)] = 8
    steps: Count = 6000
    batch: Batch = 256
    seed: Annotated[int, Field(ge=0)] = 0
    learning_rate: Annotated[float, Field(ge=1e-7, le=1)] = 5e-4
    imitation: Share = 0.25
    share_encoder: bool = True
    ema_power: Annotated[float, Field(ge=0.1, le=1)] = 0.75

    def __post_init__(self) -> None:
        if self.levels % self.sampling_steps:
            raise BidError(
                f"distill: sampling_steps is {self.sampling_steps}; valid with {self.levels} levels are "
                f"{valid_steps(self.levels)}"
            )


def valid_steps(levels: int) -> str:
    """Return the numbers of steps that visit only levels that a student knows: the divisors of their number."""
    return ", ".join(str(count) for count in range(1, levels + 1) if levels % count == 0)


def student_settings(teacher: DiffusionConfig, config: DistillConfig) -> DiffusionConfig:
    """Return how the student of a teacher is sampled."""
    return replace(
        teacher,
        sampler="consistency",
        prediction="sample",
        spacing="trailing",
        sampling_steps=config.sampling_steps,
    )


class Distiller(Descent):
    """Trains one student. Encoders stay as they are.

    Args:
        teacher: the network to distil; it is not changed.
        diffusion: settings of the teacher.
        config: settings of the distillation.
        conditions: ``(K, W, C)`` encoded observation of each window, K times differently augmented.
        actions: ``(W, H, D)`` normalised chunk of each window.
        teacher_conditions: ``(K, W, C)`` the same observations from the teacher's own encoder; default: ``conditions``.
        initial: network with whose weights the student begins; default: the teacher.

    Attributes:
        student: the network in training; averaged: its moving average, which is what is exported.
        step: number of steps taken.
    """

    def __init__(
        self,
        teacher: Denoiser,
        diffusion: DiffusionConfig,
        config: DistillConfig,
        conditions: torch.Tensor,
        actions: torch.Tensor,
        teacher_conditions: torch.Tensor | None = None,
        initial: Denoiser | None = None,
    ) -> None:
        self._teacher = teacher.eval().requires_grad_(False)
        self.student = copy.deepcopy(initial or teacher).requires_grad_(True).train()
        self.averaged = copy.deepcopy(self.student).requires_grad_(False)
        self._diffusion, self._config = diffusion, config
        self._conditions, self._actions = conditions, actions
        self._teacher_conditions = conditions if teacher_conditions is None else teacher_conditions
        optimiser = torch.optim.Adam(self.student.parameters(), lr=config.learning_rate)
        super().__init__(self.student, self.averaged, optimiser, config.ema_power, MOST_KEPT)
        steps = Sampler(replace(diffusion, spacing="trailing", sampling_steps=config.levels)).steps
        self._times = torch.tensor([int(step.timestep[0]) for step in steps])
        self._factors = {name: torch.tensor([getattr(step, name) for step in steps]) for name in FACTORS}
        knows_clean = initial is None and diffusion.prediction == "sample"
        self._imitates = 0 if knows_clean else round(config.imitation * config.steps)

    def advance(self) -> float:
        """Take one optimiser step; return the loss."""
        config = self._config
        rate = config.learning_rate * (1 + math.cos(math.pi * self.step / config.steps)) / 2
        windows = batch_windows(len(self._actions), config.batch, self.step, config.seed)
        generator = torch.Generator().manual_seed(seed_of(config.seed, self.step))
        loss = self._loss(torch.from_numpy(windows), generator)
        self.descend(loss, rate)
        return float(loss.item())

    def _loss(self, windows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        count = len(windows)
        copies = torch.randint(len(self._conditions), (count,), generator=generator)
        condition, teacher_condition = self._conditions[copies, windows], self._teacher_conditions[copies, windows]
        actions = self._actions[windows]
        index = torch.randint(self._config.levels, (count,), generator=generator)
        noise = torch.randn(actions.shape, generator=generator)
        noisy = self._at("signal", index) * actions + self._at("noise", index) * noise
        with torch.no_grad():
            clean = self._clean(self._teacher(noisy, self._times[index], teacher_condition), noisy, index)
            if self.step < self._imitates:
                target = clean
            else:
                less = self._at("keep", index) * noisy + self._at("add", index) * clean
                last = index == self._config.levels - 1
                following = self._times[(index + 1).clamp(max=self._config.levels - 1)]
                target = self.student(less, following, condition).clamp(-self._diffusion.limit, self._diffusion.limit)
                target = torch.where(last[:, None, None], clean, target)
        return torch.nn.functional.mse_loss(self.student(noisy, self._times[index], condition), target)

    def _clean(self, output: torch.Tensor, noisy: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Return the clean chunk that the teacher's output means, clipped as in sampling."""
        clean = self._at("from_output", index) * output + self._at("from_sample", index) * noisy
        return clean.clamp(-self._diffusion.limit, self._diffusion.limit)

    def _at(self, factor: str, index: torch.Tensor) -> torch.Tensor:
        """Return a factor of the teacher's sampling steps, for chunks ``(B, H, D)`` at these levels."""
        return self._factors[factor][index, None, None]
