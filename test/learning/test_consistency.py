"""Consistency distillation, against a distribution of which teacher and student are known exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.learning.consistency import DistillConfig, Distiller, student_settings
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler, cumulative_alphas

MEAN, SPREAD = 0.1, 0.2  # of the chunks' values, which are independent
ALPHAS = torch.from_numpy(cumulative_alphas(100)).float()


def noise_levels(step: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    alpha = ALPHAS[step][:, None, None]
    return alpha.sqrt(), (1 - alpha).sqrt()


class Mean(nn.Module):
    """The best prediction of a clean value: what a teacher of such data learns."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        signal, noise = noise_levels(step)
        gain = signal * SPREAD**2 / (signal**2 * SPREAD**2 + noise**2)
        return MEAN + gain * (sample - signal * MEAN) + 0 * self.unused


class Noise(Mean):
    """The same as the noise that is left."""

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        signal, noise = noise_levels(step)
        return (sample - signal * super().forward(sample, step, condition)) / noise


class End(Mean):
    """Where the deterministic path of a sample ends: the consistency function that a student should learn."""

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        signal, noise = noise_levels(step)
        scale = SPREAD / (signal**2 * SPREAD**2 + noise**2).sqrt()
        return MEAN + scale * (sample - signal * MEAN) + 0 * self.unused


def distiller(teacher: nn.Module, **changes: object) -> Distiller:
    actions = torch.from_numpy(np.random.default_rng(0).normal(MEAN, SPREAD, (200, 4, 3))).float()
    diffusion = DiffusionConfig(prediction="epsilon" if isinstance(teacher, Noise) else "sample")
    return Distiller(teacher, diffusion, DistillConfig(levels=100, **changes), torch.zeros(2, 200, 5), actions)


def loss(made: Distiller) -> float:
    with torch.no_grad():
        return float(made._loss(torch.arange(200), torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("teacher", [Mean, Noise])
def test_the_consistency_function_is_what_a_student_is_pulled_to(teacher):
    made = distiller(teacher(), imitation=0.01)
    made.step = 100
    made.student = End()
    best = loss(made)
    made.student = Mean()
    assert best < 0.01 * SPREAD**2 and loss(made) > 3 * best


def test_a_student_of_a_teacher_of_noise_first_imitates_its_clean_chunks():
    made = distiller(Noise())
    made.student = Mean()
    # Except at the noisiest level, where a clean chunk that comes from noise is clipped.
    assert loss(made) < 0.02
    made.student = End()
    assert loss(made) > 0.5 * SPREAD**2


def test_two_steps_of_the_consistency_function_draw_from_the_data():
    settings = student_settings(DiffusionConfig(), DistillConfig())
    assert (settings.sampler, settings.sampling_steps, settings.prediction) == ("consistency", 2, "sample")
    noise = np.random.default_rng(3).standard_normal((2, 20_000, 1, 1), dtype=np.float32)
    end = End()

    def denoise(sample: np.ndarray, step: np.ndarray) -> np.ndarray:
        return end(torch.from_numpy(sample), torch.from_numpy(step), torch.zeros(1)).detach().numpy()

    chunks = Sampler(settings).run(denoise, noise)
    assert chunks.mean() == pytest.approx(MEAN, abs=0.01)
    assert chunks.std() == pytest.approx(SPREAD, rel=0.02)


class Network(nn.Module):
    """Something that can learn."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        return self.layer(sample)


def test_a_resumed_distillation_ends_with_the_same_weights():
    torch.manual_seed(0)
    teacher = Network()
    before = teacher.layer.weight.clone()
    whole, half = distiller(teacher, steps=6), distiller(teacher, steps=6)
    for _ in range(6):
        whole.advance()
    for _ in range(3):
        half.advance()
    resumed = distiller(teacher, steps=6)
    resumed.restore(half.state())
    for _ in range(3):
        resumed.advance()
    for name in ("student", "averaged"):
        assert torch.equal(getattr(resumed, name).layer.weight, getattr(whole, name).layer.weight)
    assert torch.equal(teacher.layer.weight, before) and not torch.equal(whole.averaged.layer.weight, before)


class Heard(Mean):
    """Notes the conditions that it is given."""

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        self.conditions = condition
        return super().forward(sample, step, condition)


def test_teacher_and_student_each_have_the_condition_of_their_own_encoder():
    actions, diffusion = torch.zeros(10, 4, 3), DiffusionConfig()
    teacher, initial = Heard(), Heard()
    own, others = torch.ones(2, 10, 5), torch.full((2, 10, 5), 2.0)
    made = Distiller(teacher, diffusion, DistillConfig(steps=8), own, actions, others, initial)
    made.advance()
    assert (made.student.conditions == 1).all() and (teacher.conditions == 2).all()
    assert made._imitates == 2, "a student that begins as another policy first has to imitate its teacher"
    assert Distiller(teacher, diffusion, DistillConfig(steps=8), own, actions)._imitates == 0


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"sampling_steps": 3, "levels": 20}, "sampling_steps is 3; valid with 20 levels are 1, 2, 4, 5, 10, 20"),
        ({"sampling_steps": 0}, "sampling_steps is 0; valid is"),
        ({"steps": 0}, "steps is 0; valid is"),
        ({"imitation": 2.0}, "imitation is 2.0; valid is"),
    ],
)
def test_impossible_settings_are_refused(values, problem):
    with pytest.raises(BidError, match=problem):
        DistillConfig(**values)
