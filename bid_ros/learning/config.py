"""Settings of a training run. The defaults are for `franka_place` and, of VQ-BeT, for Push-T on two CPU cores."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from bid_ros.core.errors import BidError
from bid_ros.core.settings import Count, Positive, settings
from bid_ros.policy.anchor import ActionReference
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.vqbet.codes import MOST_CODES, Temperature

GROUPS: Final = 8  # of the denoiser's group normalisation; every width is a multiple
MOST_WINDOWS: Final = 65_536
"""Of a step; more fill the memory before anything is trained."""
Batch = Annotated[int, Field(ge=1, le=MOST_WINDOWS)]
Width = Annotated[int, Field(ge=GROUPS, multiple_of=GROUPS)]
Half = Annotated[float, Field(ge=0, le=0.5)]
Size = Annotated[int, Field(ge=1, le=4096)]
Weight = Annotated[float, Field(ge=0)]


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("an odd number from 1 to 15")
    return value


@settings
class NetworkConfig:
    """Sizes of the networks.

    Attributes:
        widths: channels of the denoiser per level. Each level after the first halves the time axis. So the horizon must
            be a multiple of ``2 ** (len(widths) - 1)``.
        kernel: taps of its convolutions along time, odd.
        blocks: residual blocks a level.
        condition: C, size of the observation's encoding.
        step_embedding: size of the noise level's encoding, even.
        keypoints: points that the image encoder tracks in each camera image.
        image_width: channels of the image encoder, a multiple of 4.

    Raises:
        BidError: for a value outside its range.
    """

    widths: Annotated[tuple[Width, ...], Field(min_length=1, max_length=5)] = (32, 64, 128)
    kernel: Annotated[int, Field(ge=1, le=15), AfterValidator(_odd)] = 5
    blocks: Annotated[int, Field(ge=1, le=4)] = 1
    condition: Annotated[int, Field(ge=1, le=1024)] = 128
    step_embedding: Annotated[int, Field(ge=4, le=1024, multiple_of=2)] = 64
    keypoints: Annotated[int, Field(ge=1, le=256)] = 32
    image_width: Annotated[int, Field(ge=4, le=512, multiple_of=4)] = 32


@settings
class AugmentConfig:
    """Random changes of training images, drawn once a sample and shared by its observation steps.

    Attributes:
        brightness: largest offset, as a share of the full range.
        contrast: largest relative change of the contrast about the image's mean, and of each colour's gain (half).
        noise: largest standard deviation of pixel noise, as a share of the full range.
        shift: largest shift in whole pixels, edges repeated. Off by default: a shift moves the image but not the
            action, so the policy becomes as inaccurate as the shift is wide.
        state: standard deviation of an offset on each vector, as a share of half its range: the same for all steps of a
            sample, and a fifth of it independent per step. It keeps a policy from trusting its own position more than
            the images. Off by default: positions relative to the tool need the exact tool position.
        angles: standard deviation, rad, of such an offset on observed joints and on the entries of observed rotations,
            on top of ``state``. A real arm bends and turns a little where a simulated demonstration does not. Off by
            default.
        history: share of the samples that see the newest observation at all their steps, as if nothing had moved
            (dropout of past motion, Bansal et al., "ChauffeurNet", RSS 2019). It keeps a policy from copying its own
            motion: a robot that stands would stand on. Off by default.

    Raises:
        BidError: for a value outside its range.
    """

    brightness: Half = 0.1
    contrast: Half = 0.15
    noise: Half = 0.02
    shift: Annotated[int, Field(ge=0, le=8)] = 0
    state: Half = 0.0
    angles: Half = 0.0
    history: Annotated[float, Field(ge=0, lt=1)] = 0.0


@settings
class VqBetConfig:
    """Sizes of the networks, and how they are trained. The defaults are for Push-T on a CPU.

    The published policy of Push-T is wider (512, 8 layers, 8 heads). Its second codes are independent of the first ones
    (``sequential`` false), its heads are linear (``head`` 0), and its offsets are learnt for codes that are drawn
    (``offset_codes``).

    Attributes:
        codes: C, codes of each of the two layers of the quantiser.
        latent: size of what is quantised.
        coder: width of the quantiser's encoder and decoder, which have two hidden layers each.
        coder_steps: steps that these are trained for before everything else. Then they are frozen.
        coder_learning_rate: of these steps.
        commitment: weight of the distance between what is quantised and its codes.
        width, layers, heads: of the transformer.
        dropout: of the transformer, in training.
        queries: an action query follows the tokens of each observation step, and the outputs are read there. Otherwise
            they are read at the last token of the step.
        head: width of the hidden layer of the heads; 0: linear heads.
        sequential: the second code is drawn given the first one. Otherwise each is drawn on its own, and the two need
            not belong together.
        focal: exponent of the focal loss (Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, Eq. 4).
        primary_weight, secondary_weight: of the focal losses of the two codes.
        offset_codes: ``true``: the offsets of the demonstrated chunk's own codes are learnt. ``drawn``: those of codes
            drawn as in use, as published, so that a wrong code is mended by its offset.
        offset_weight: of the mean absolute error of the actions, in units of their spread.
        temperature: with which the policy is exported; of ``drawn`` codes too.

    Raises:
        BidError: for a value outside its range.
    """

    codes: Annotated[int, Field(ge=2, le=MOST_CODES)] = 16
    latent: Size = 32
    coder: Size = 128
    coder_steps: Size = 3000
    coder_learning_rate: Annotated[float, Field(ge=1e-7, le=1)] = 1e-3
    commitment: Weight = 5.0
    width: Size = 128
    layers: Annotated[int, Field(ge=1, le=32)] = 4
    heads: Annotated[int, Field(ge=1, le=32)] = 4
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    queries: bool = False
    head: Annotated[int, Field(ge=0, le=4096)] = 256
    sequential: bool = True
    focal: Weight = 2.0
    primary_weight: Positive = 5.0
    secondary_weight: Weight = 0.5
    offset_codes: Literal["true", "drawn"] = "true"
    offset_weight: Weight = 10.0
    temperature: Temperature = 0.5

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise BidError(f"vqbet: width is {self.width}; valid with {self.heads} heads is a multiple of {self.heads}")


@settings
class ActConfig:
    """Sizes of ACT's transformer, and how it is trained. The defaults are for a CPU; the published one is 512 wide.

    Attributes:
        width: of a token.
        heads: of the attention.
        hidden: of the two layers behind the attention.
        encoder_layers, decoder_layers: their numbers. The encoder of the style has as many as the encoder.
        latent: size of the style.
        style_weight: of the divergence of the style from a standard normal one.

    Raises:
        BidError: for a value outside its range.
    """

    width: Size = 128
    heads: Annotated[int, Field(ge=1, le=32)] = 4
    hidden: Size = 256
    encoder_layers: Annotated[int, Field(ge=1, le=32)] = 2
    decoder_layers: Annotated[int, Field(ge=1, le=32)] = 2
    latent: Size = 8
    style_weight: Weight = 10.0

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise BidError(f"act: width is {self.width}; valid with {self.heads} heads is a multiple of {self.heads}")


@settings
class TrainConfig:
    """One training run. The same configuration, data, machine and thread count give the same weights.

    Attributes:
        steps: optimiser steps of the strong policy.
        weak_steps: step whose weights become the weak policy; 0 is a tenth of ``steps``.
        batch: windows a step.
        seed: seed of initial weights, order, noise, augmentation and the held-out episodes.
        device: ``auto`` (a GPU if there is one), ``cpu`` or ``cuda``.
        threads: CPU threads. 0: PyTorch chooses.
        learning_rate: peak. It rises linearly over ``warm_up`` (share of the steps), then falls along a cosine to 0.
        weight_decay: of AdamW.
        ema_power: the averaged weights keep ``1 - (1 + step) ** -ema_power`` of their past, at most 0.9999.
        action_reference: origin of the policy's positions, see :mod:`bid_ros.policy.anchor`.
        assign_noise: noise is assigned to the actions of a batch (:mod:`bid_ros.learning.trainer`).
        goal_weight: weight of the auxiliary loss on the goal (see :mod:`bid_ros.learning.windows`).
        validation_share: share of held-out episodes, at least one of two or more. 0: none.
        validate_every, checkpoint_every, log_every: steps between validations, checkpoints and log lines.
        family: of the policy.
        network, augment, diffusion, vqbet, act: see there. Of the last two, ``network`` only sizes the image encoders.

    Raises:
        BidError: for a value outside its range.
    """

    steps: Count = 8000
    weak_steps: Annotated[int, Field(ge=0)] = 0
    batch: Batch = 64
    seed: Annotated[int, Field(ge=0)] = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Annotated[int, Field(ge=0)] = 0
    learning_rate: Annotated[float, Field(ge=1e-7, le=1)] = 5e-4
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 1e-4
    warm_up: Annotated[float, Field(ge=0, le=0.9)] = 0.05
    ema_power: Annotated[float, Field(ge=0.1, le=1)] = 0.75
    action_reference: ActionReference = "tool"
    assign_noise: bool = False
    goal_weight: Annotated[float, Field(ge=0, le=100)] = 0.5
    validation_share: Half = 0.05
    validate_every: Count = 500
    checkpoint_every: Count = 500
    log_every: Count = 50
    family: Literal["diffusion", "vqbet", "act"] = "diffusion"
    network: NetworkConfig = NetworkConfig()
    augment: AugmentConfig = AugmentConfig()
    diffusion: DiffusionConfig = DiffusionConfig()
    vqbet: VqBetConfig = VqBetConfig()
    act: ActConfig = ActConfig()

    def __post_init__(self) -> None:
        if self.weak_steps > self.steps:
            raise BidError(f"train: weak_steps is {self.weak_steps}; valid is up to steps, {self.steps}")
        if self.family != "diffusion" and self.diffusion.simulated_delay:
            raise BidError(
                f"train: simulated_delay is {self.diffusion.simulated_delay} with the family {self.family}, which "
                "denoises nothing; valid is 0, or the family diffusion or flow"
            )

    @property
    def weak_at(self) -> int:
        """The step whose weights become the weak policy."""
        return self.weak_steps or max(1, self.steps // 10)
