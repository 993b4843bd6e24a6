"""Sizes and rates that a camera offers."""

from collections.abc import Iterable

Mode = tuple[int, int, float]
"""Width and height in px, and images a second."""


def modes_text(modes: Iterable[Mode]) -> str:
    """Return modes as text, such as ``640x480 at 15, 30 Hz; 1280x720 at 30 Hz``."""
    rates: dict[tuple[int, int], set[float]] = {}
    for width, height, rate in modes:
        rates.setdefault((width, height), set()).add(rate)
    return "; ".join(
        f"{width}x{height} at {', '.join(f'{rate:g}' for rate in sorted(rates[width, height]))} Hz"
        for width, height in sorted(rates)
    )
