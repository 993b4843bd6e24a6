"""What one probe found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bid_ros.core.errors import BidError

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class CheckFinding:
    """One line of the table.

    Attributes:
        what: was looked at.
        state: ``ok``; ``warn``: the system starts, but may not run well; ``fail``: it will not run.
        measured: what was found, in a few words.
        advice: what to do about it; empty if nothing is to be done.
    """

    what: str
    state: State
    measured: str
    advice: str = ""


def tried(what: str, work: Callable[[], str], advice: str) -> CheckFinding:
    """Return what ``work`` says, or that it failed: the sentence of its BidError, and the advice."""
    try:
        return CheckFinding(what, "ok", work())
    except BidError as error:
        return CheckFinding(what, "fail", str(error), advice)


def least(what: str, value: float, needed: float, shown: str, advice: str) -> CheckFinding:
    """Return ok if ``value`` is at least what is needed, else a warning with the advice; ``shown`` is the value."""
    return CheckFinding(what, "ok", shown) if value >= needed else CheckFinding(what, "warn", shown, advice)
