"""Chooses the next best candidate where the best may not be executed."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import Array
from bid_ros.decoding import Choice, Decoder, DecodeRequest

Screening = Callable[[Array], NDArray[np.bool_]]


@dataclass(frozen=True)
class Chosen:
    """A decision among candidates.

    Attributes:
        choice: of the decoder.
        decoder: that has decided once.
        strong, weak: candidates without those that may not be executed, ``(N, H, D)`` and ``(M, H, D)`` or None.
    """

    choice: Choice
    decoder: Decoder
    strong: Array
    weak: Array | None


@dataclass(frozen=True)
class SecondBest:
    """What may be executed, looked at only in what was chosen: in all candidates it would take too long.

    Attributes:
        free: says whether a chosen prediction ``(H, D)`` may be executed. None: all may.
        rest: says it of the other candidates together, once one may not, but for what only ``free`` knows. None:
            nothing.
    """

    free: Callable[[Array], bool] | None = None
    rest: Screening | None = None

    def choose(self, decoder: Decoder, request: DecodeRequest, strong: Array, weak: Array | None) -> Chosen:
        """Let a decoder choose until the choice may be executed, or is the last one: the safety node judges it.

        Where ``rest`` lets no other candidate pass, the best of all is chosen. Raises as the decoder.
        """
        rest = self.rest
        while self.free is not None and len(strong) > 1:
            before = deepcopy(decoder)
            choice = decoder.choose(request, strong, weak)
            if choice.index < 0 or self.free(choice.actions):
                return Chosen(choice, decoder, strong, weak)
            others = np.delete(strong, choice.index, axis=0)
            if rest is not None:
                passed, rest = rest(others), None
                if not passed.any():
                    return Chosen(choice, decoder, strong, weak)
                others = others[passed]
            decoder, strong = before, others  # it has not decided
            weak = None if weak is None else weak[: len(strong)]
        return Chosen(decoder.choose(request, strong, weak), decoder, strong, weak)
