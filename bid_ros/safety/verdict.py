"""The verdict on a chunk."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

NOT_A_NUMBER: Final = float("nan")


class Action(Enum):
    """What a verdict does: nothing, refuse this chunk, slow it (no rule does today), or latch a stop."""

    NONE = "none"
    WARN = "warn"
    SCALE = "scale"
    STOP = "stop"


@dataclass(frozen=True)
class Verdict:
    """Whether a whole chunk may be forwarded, and why not.

    Attributes:
        ok: the chunk keeps every limit.
        rule: short name of the broken limit (``finite``, ``workspace``, ``speed``, ...), empty if ok.
        reason: one sentence with the measured value and the limit, empty if ok.
        measured: the value that broke the limit, in the limit's unit; NaN if there is none.
        limit: the limit; NaN if it is not a number.
    """

    ok: bool
    rule: str = ""
    reason: str = ""
    measured: float = NOT_A_NUMBER
    limit: float = NOT_A_NUMBER


ACCEPTED: Final = Verdict(True)


def refused(rule: str, reason: str, measured: float = NOT_A_NUMBER, limit: float = NOT_A_NUMBER) -> Verdict:
    """Return the refusal of a chunk; the arguments are those of :class:`Verdict`."""
    return Verdict(False, rule, reason, float(measured), float(limit))
