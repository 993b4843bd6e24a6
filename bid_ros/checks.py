"""Range checks of configurations, all in one sentence: what, the offending value, the valid range."""

from __future__ import annotations

import math


def check_range(
    what: str, name: str, value: float, low: float, high: float, error: type[Exception], unit: str = ""
) -> None:
    """Raise ``error`` unless ``low <= value <= high``; NaN lies in no range.

    Args:
        what: whose value it is, begins the sentence; empty where the name says enough.
        name: of the value.
        value: in ``unit``.
        low, high: ends of the range, both valid.
        error: class to raise, with the sentence as its only argument.
        unit: follows the value in the sentence.
    """
    if not low <= value <= high:
        raise error(f"{_sentence(what, name, value, unit)}; valid is {low} to {high}")


def check_positive(what: str, name: str, value: float, error: type[Exception], unit: str = "") -> None:
    """Raise ``error`` unless ``value`` is above 0 and finite; arguments as :func:`check_range`."""
    if not 0 < value < math.inf:
        raise error(f"{_sentence(what, name, value, unit)}; valid is a positive finite number")


def _sentence(what: str, name: str, value: float, unit: str) -> str:
    subject = f"{what}: {name}" if what else name
    return f"{subject} is {value} {unit}" if unit else f"{subject} is {value}"
