"""The decoders that draw one sample and execute ``action_horizon`` of its actions.

``vanilla`` executes it as it is. ``ema`` is the exponential moving average over decisions, the temporal ensembling of
Zhao et al. (ACT, RSS 2023). A warm start denoises from the previous decision, not from noise (Janner et al., Diffuser,
ICML 2022).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.decoding.decoder import Choice, DecodeRequest
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import DecisionMemory, Overlap
from bid_ros.decoding.receding import Array, Builder, RecedingDecoder


class AveragingDecoder(RecedingDecoder):
    """Blends ``new[i] = weight new[i] + (1 - weight) previous[i]`` on the overlap. Later rows stay as they are.

    All columns are blended linearly, rotations too. Their six-number form is made orthogonal again before it is
    executed. The decoder remembers the blend.

    With ``ensemble`` m in the settings, a row is the average of all predictions of its instant, with the weight
    ``exp(-m j)`` of the j-th of them, the oldest first (Zhao et al., RSS 2023, Algorithm 2). That is the same blend,
    with a weight that depends on how many predictions are in a row already.

    Args:
        name: name in the registry.
        config: settings.
        options: of :class:`bid_ros.decoding.receding.RecedingDecoder`.
    """

    def __init__(self, name: str, config: DecoderConfig, **options: Any) -> None:
        super().__init__(name, config, blend=self._average, **options)
        self._counts = DecisionMemory(config.between)

    def reset(self) -> None:
        """Forget the previous decision, and how many are in it."""
        super().reset()
        self._counts.reset()

    def choose(self, request: DecodeRequest, strong: ArrayLike, weak: ArrayLike | None) -> Choice:
        """Pick, blend and remember. Raises DecodingError as :meth:`Decoder.choose`."""
        choice = super().choose(request, strong, weak)
        self._counts.remember(request.stamp_ns, request.dt_ns, 1 + self._predictions(request))
        return choice

    def _predictions(self, request: DecodeRequest) -> Array:
        """Return how many predictions are in each row of the previous decision, ``(H, 1)``; 0 where it has none.

        Between two rows it is a fraction.
        """
        counts, before = np.zeros((request.horizon, 1)), self._counts.previous_for(request.stamp_ns)
        if before is not None:
            counts[: len(before.previous)] = before.previous
        return counts

    def _average(self, new: Array, overlap: Overlap, request: DecodeRequest, config: DecoderConfig) -> Array:
        blended, rows = new.copy(), overlap.previous.shape[0]
        weight: Any = config.ema_weight
        if config.ensemble is not None:
            weight = newest_share(self._predictions(request)[:rows], config.ensemble)
        blended[:rows] = weight * new[:rows] + (1.0 - weight) * overlap.previous
        return blended


def newest_share(older: Array, decay: float) -> Array:
    """Return the weight of one more prediction beside ``older`` ones, ``exp(-m n) / sum_j exp(-m j)``; m: ``decay``.

    A fraction of a prediction is rounded.
    """
    counts = np.rint(older).astype(int)
    with np.errstate(over="ignore"):  # such a weight is 0
        sums = np.cumsum(np.exp(decay * np.arange(counts.max() + 1)))
    shares: Array = 1.0 / sums[counts]
    return shares


# One sample, executed as it is: closed loop with an action horizon of 1, open loop with ``all``.
vanilla: Final[Builder] = RecedingDecoder

DECODERS: Final[Mapping[str, Builder]] = {
    "vanilla": vanilla,
    # One sample, blended with the previous decision.
    "ema": AveragingDecoder,
    # One sample, started from the previous decision shifted by the steps that passed, its last row repeated.
    "warmstart": partial(RecedingDecoder, start_mode=None),
}
