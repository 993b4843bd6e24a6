"""Range checks of configurations. Each error is one sentence: name, value, valid range."""

import math


def check_range(
    what: str, name: str, value: float, low: float, high: float, error: type[Exception], unit: str = ""
) -> None:
    """Raise ``error`` unless ``low <= value <= high``. NaN is never valid.

    Args:
        what: owner of the value; the sentence begins with it. Empty where the name says enough.
        name: name of the value.
        value: the value, in ``unit``.
        low, high: ends of the range. Both are valid.
        error: class to raise. The sentence is its only argument.
        unit: unit of the value, as the sentence shows it.
    """
    if not low <= value <= high:
        raise error(f"{_sentence(what, name, value, unit)}; valid is {low} to {high}")


def check_positive(what: str, name: str, value: float, error: type[Exception], unit: str = "") -> None:
    """Raise ``error`` unless ``value`` is above 0 and finite. Arguments as in :func:`check_range`."""
    if not 0 < value < math.inf:
        raise error(f"{_sentence(what, name, value, unit)}; valid is a positive finite number")


def _sentence(what: str, name: str, value: float, unit: str) -> str:
    subject = f"{what}: {name}" if what else name
    return f"{subject} is {value} {unit}" if unit else f"{subject} is {value}"
