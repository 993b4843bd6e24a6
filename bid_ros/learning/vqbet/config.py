"""Sizes and losses of VQ-BeT (Lee et al., "Behavior Generation with Latent Actions", ICML 2024)."""

from typing import Annotated, Literal

from pydantic import Field

from bid_ros.core.errors import BidError
from bid_ros.core.settings import Positive, settings
from bid_ros.policy.vqbet.codes import MOST_CODES, Temperature

Size = Annotated[int, Field(ge=1, le=4096)]
Weight = Annotated[float, Field(ge=0)]


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
