"""The verdict on a chunk."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

NOT_A_NUMBER: Final = float("nan")
NO_ROW: Final = -1


class Action(Enum):
    """What a verdict does: nothing, warn, slow the chunk down, or stop."""

    NONE = "none"
    WARN = "warn"
    SCALE = "scale"
    STOP = "stop"


@dataclass(frozen=True)
class Verdict:
    """Whether a whole chunk may be forwarded, and why not.

    Attributes:
        ok: the chunk may be forwarded.
        rule: short name of the broken limit (``finite``, ``workspace``, ``speed``, ...), empty if ok.
        reason: one sentence with the measured value and the limit, empty if ok.
        measured: the value that broke the limit, in the limit's unit; NaN if there is none.
        limit: the limit; NaN if it is not a number.
        action: what is done about it. A chunk with ``WARN`` or ``SCALE`` is forwarded, so it is ok.
        row: of the chunk, from which on the limit is broken; -1: it belongs to no row.
    """

    ok: bool
    rule: str = ""
    reason: str = ""
    measured: float = NOT_A_NUMBER
    limit: float = NOT_A_NUMBER
    action: Action = Action.NONE
    row: int = NO_ROW


ACCEPTED: Final = Verdict(True)


def refused(
    rule: str, reason: str, measured: float = NOT_A_NUMBER, limit: float = NOT_A_NUMBER, row: int = NO_ROW
) -> Verdict:
    """Return the refusal of a chunk; the arguments are those of :class:`Verdict`."""
    return Verdict(False, rule, reason, float(measured), float(limit), Action.STOP, row)
