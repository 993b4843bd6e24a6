"""What a training run is told. The defaults are for `franka_place` on two CPU cores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bid_ros.checks import check_range
from bid_ros.errors import BidError
from bid_ros.policy.anchor import ACTION_REFERENCES, ActionReference
from bid_ros.policy.sampler import DiffusionConfig

DEVICES: Final = ("auto", "cpu", "cuda")
GROUPS: Final = 8  # of the denoiser's group normalisation; every width is a multiple


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the networks.

    Attributes:
        widths: channels of the denoiser per level; each level after the first halves the time axis, so the horizon
            must be a multiple of ``2 ** (len(widths) - 1)``.
        kernel: taps of its convolutions along time, odd.
        blocks: residual blocks a level.
        condition: C, size of the observation's encoding.
        step_embedding: size of the noise level's encoding, even.
        keypoints: points that the image encoder tracks in each camera image.
        image_width: channels of the image encoder, a multiple of 4.

    Raises:
        BidError: for a value outside its range.
    """

    widths: tuple[int, ...] = (32, 64, 128)
    kernel: int = 5
    blocks: int = 1
    condition: int = 128
    step_embedding: int = 64
    keypoints: int = 32
    image_width: int = 32

    def __post_init__(self) -> None:
        if not 1 <= len(self.widths) <= 5 or any(width < GROUPS or width % GROUPS for width in self.widths):
            raise BidError(f"networks: widths are {self.widths}; valid are 1 to 5 multiples of {GROUPS}")
        if self.kernel % 2 == 0 or not 1 <= self.kernel <= 15:
            raise BidError(f"networks: kernel is {self.kernel}; valid is an odd number from 1 to 15")
        if self.step_embedding % 2 or not 4 <= self.step_embedding <= 1024:
            raise BidError(f"networks: step_embedding is {self.step_embedding}; valid is an even number from 4 to 1024")
        if self.image_width % 4 or not 4 <= self.image_width <= 512:
            raise BidError(f"networks: image_width is {self.image_width}; valid is a multiple of 4 from 4 to 512")
        for name, most in (("blocks", 4), ("condition", 1024), ("keypoints", 256)):
            check_range("networks", name, getattr(self, name), 1, most, BidError)


@dataclass(frozen=True)
class AugmentConfig:
    """Random changes of training images, drawn once a sample and shared by its observation steps.

    Attributes:
        brightness: largest offset, as a share of the full range.
        contrast: largest relative change of the contrast about the image's mean, and of each colour's gain (half).
        noise: largest standard deviation of pixel noise, as a share of the full range.
        shift: largest shift in whole pixels, edges repeated. Off by default: a shift moves what is seen but not
            the action that goes with it, so the policy becomes as vague as the shift is wide.
        state: standard deviation of an offset on each vector, as a share of half its range, the same for all steps
            of a sample, and a fifth of it independent per step. It keeps a policy from trusting its own position more
            than the images. Off by default: positions that count from the tool need the exact one.

    Raises:
        BidError: for a value outside its range.
    """

    brightness: float = 0.1
    contrast: float = 0.15
    noise: float = 0.02
    shift: int = 0
    state: float = 0.0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "noise", "state"):
            check_range("augmentation", name, getattr(self, name), 0, 0.5, BidError)
        if not 0 <= self.shift <= 8:
            raise BidError(f"augmentation: shift is {self.shift}; valid is 0 to 8 pixels")


@dataclass(frozen=True)
class TrainConfig:
    """One training run. The same configuration, data, machine and thread count give the same weights.

    Attributes:
        steps: optimiser steps of the strong policy.
        weak_steps: step whose weights become the weak policy; 0 is a tenth of ``steps``.
        batch: windows a step.
        seed: of initial weights, order, noise, augmentation and the held-out episodes.
        device: ``auto`` (a GPU if there is one), ``cpu`` or ``cuda``.
        threads: CPU threads, 0 leaves the choice to PyTorch.
        learning_rate: peak; it rises linearly over ``warm_up`` (share of the steps), then falls along a cosine to 0.
        weight_decay: of AdamW.
        ema_power: the averaged weights keep ``1 - (1 + step) ** -ema_power`` of their past, at most 0.9999.
        action_reference: where the policy's positions count from, see :mod:`bid_ros.policy.anchor`.
        goal_weight: weight of the auxiliary loss on the goal (see :mod:`bid_ros.learning.goal`).
        validation_share: share of the episodes held out, at least one if there are two or more; 0 holds none out.
        validate_every, checkpoint_every, log_every: steps between validations, checkpoints and log lines.
        network, augment, diffusion: see there.

    Raises:
        BidError: for a value outside its range.
    """

    steps: int = 8000
    weak_steps: int = 0
    batch: int = 64
    seed: int = 0
    device: str = "auto"
    threads: int = 0
    learning_rate: float = 5e-4
    weight_decay: float = 1e-4
    warm_up: float = 0.05
    ema_power: float = 0.75
    action_reference: ActionReference = "tool"
    goal_weight: float = 0.5
    validation_share: float = 0.05
    validate_every: int = 500
    checkpoint_every: int = 500
    log_every: int = 50
    network: NetworkConfig = field(default_factory=NetworkConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    diffusion: DiffusionConfig = field(default_factory=DiffusionConfig)

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "validate_every", "checkpoint_every", "log_every"):
            if getattr(self, name) < 1:
                raise BidError(f"training: {name} is {getattr(self, name)}; valid is 1 or more")
        if not 0 <= self.weak_steps <= self.steps:
            raise BidError(f"training: weak_steps is {self.weak_steps}; valid is 0 to steps, {self.steps}")
        if self.seed < 0 or self.threads < 0:
            raise BidError(f"training: seed {self.seed}, threads {self.threads}; valid is 0 or more")
        if self.device not in DEVICES:
            raise BidError(f"training: device is '{self.device}'; valid are {', '.join(DEVICES)}")
        if self.action_reference not in ACTION_REFERENCES:
            raise BidError(
                f"training: action_reference is '{self.action_reference}'; valid are {', '.join(ACTION_REFERENCES)}"
            )
        for name, least, most in (
            ("learning_rate", 1e-7, 1.0),
            ("weight_decay", 0.0, 1.0),
            ("warm_up", 0.0, 0.9),
            ("ema_power", 0.1, 1.0),
            ("goal_weight", 0.0, 100.0),
            ("validation_share", 0.0, 0.5),
        ):
            check_range("training", name, getattr(self, name), least, most, BidError)

    @property
    def weak_at(self) -> int:
        """Step whose weights become the weak policy."""
        return self.weak_steps or max(1, self.steps // 10)
