"""How many steps pass before a decision arrives, measured while deciding."""

from collections import deque
from typing import Final

RECENT: Final = 10  # decisions


class DelayMeter:
    """Tells the delay that the next decision must expect: the longest of the last ones, in whole steps.

    Source: Black, Galliker, Levine, "Real-Time Execution of Action Chunking Flow Policies", NeurIPS 2025, Algorithm 1.

    Args:
        step_ns: time between two rows of a chunk, ns.
    """

    def __init__(self, step_ns: int) -> None:
        self._step_ns = step_ns
        self._recent: deque[int] = deque(maxlen=RECENT)

    @property
    def steps(self) -> int | None:
        """Steps of a chunk that have begun when it arrives. None before the first decision."""
        return -(-max(self._recent) // self._step_ns) if self._recent else None

    def took(self, delay_ns: int) -> None:
        """Note the time in ns from the newest observation of a decision to the publication of its chunk."""
        self._recent.append(max(0, delay_ns))
