"""The decoders that draw one sample and execute ``action_horizon`` of its actions.

``vanilla`` executes it as it is. ``ema`` is the exponential moving average over decisions, the temporal ensembling of
Zhao et al. (ACT, RSS 2023). A warm start denoises from the previous decision, not from noise (Janner et al., Diffuser,
ICML 2022).
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from bid_ros.decoding.decoder import DecodeRequest
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import Overlap
from bid_ros.decoding.receding import Array, Builder, RecedingDecoder


def moving_average(new: Array, overlap: Overlap, request: DecodeRequest, config: DecoderConfig) -> Array:
    """Blend ``new[i] = weight new[i] + (1 - weight) previous[i]`` on the overlap. Later rows stay as they are.

    All columns are blended linearly, rotations too. Their six-number form is made orthogonal again before it is
    executed. The decoder remembers the blend.
    """
    blended, rows = new.copy(), overlap.previous.shape[0]
    blended[:rows] = config.ema_weight * new[:rows] + (1.0 - config.ema_weight) * overlap.previous
    return blended


# One sample, executed as it is: closed loop with an action horizon of 1, open loop with ``all``.
vanilla: Final[Builder] = RecedingDecoder

DECODERS: Final[Mapping[str, Builder]] = {
    "vanilla": vanilla,
    # One sample, blended with the previous decision.
    "ema": partial(RecedingDecoder, blend=moving_average),
    # One sample, started from the previous decision shifted by the steps that passed, its last row repeated.
    "warmstart": partial(RecedingDecoder, start_mode=None),
}
