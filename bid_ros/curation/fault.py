"""What a check of a recording found."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        check: name of the check.
        severity: ``error``: a data set must not hold it; ``warning``: a person should look at it.
        text: one sentence: what, where, and what is valid.
        at_s: s from the begin of the episode; None if it is not at one time.
    """

    check: str
    severity: Severity
    text: str
    at_s: float | None = None


def error(check: str, text: str, at_s: float | None = None) -> Fault:
    """Return a fault that a data set must not hold."""
    return Fault(check, "error", text, at_s)


def warning(check: str, text: str, at_s: float | None = None) -> Fault:
    """Return a fault that a person should look at."""
    return Fault(check, "warning", text, at_s)
