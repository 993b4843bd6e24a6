"""Sizes and rates that a camera offers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Mode = tuple[int, int, float]
"""Width and height in px, and images a second."""
Size = tuple[int, int]
NEAR_HZ: Final = 0.01


@dataclass(frozen=True)
class ModeRange:
    """Every size on a grid, at rates in a range.

    Attributes:
        low, high, step: width and height, px.
        rates: the lowest and the highest, images a second.
    """

    low: Size
    high: Size
    step: Size
    rates: tuple[float, float]

    def __str__(self) -> str:
        """Return it as text."""
        low, high, step = (f"{width}x{height}" for width, height in (self.low, self.high, self.step))
        sizes = low if low == high else f"{low} to {high} in steps of {step}"
        slow, fast = (f"{rate:g}" for rate in self.rates)
        return f"{sizes} at {slow if slow == fast else f'{slow} to {fast}'} Hz"


def on_grid(size: Size, low: Size, high: Size, step: Size) -> bool:
    """Whether a size is one of a grid; a step of 0 px is none."""
    return all(a <= at <= b and (at - a) % max(c, 1) == 0 for at, a, b, c in zip(size, low, high, step, strict=True))


def modes_text(modes: Iterable[Mode | ModeRange]) -> str:
    """Return modes as text, such as ``640x480 at 15, 30 Hz; 1280x720 at 30 Hz``."""
    rates: dict[Size, set[float]] = {}
    ranges: list[str] = []
    for mode in modes:
        if isinstance(mode, ModeRange):
            ranges.append(str(mode))
        else:
            width, height, rate = mode
            rates.setdefault((width, height), set()).add(rate)
    single = [
        f"{width}x{height} at {', '.join(f'{rate:g}' for rate in sorted(rates[width, height]))} Hz"
        for width, height in sorted(rates)
    ]
    return "; ".join([*single, *dict.fromkeys(ranges)])
