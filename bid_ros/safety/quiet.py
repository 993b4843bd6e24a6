"""Notices when the source that may move the arm sends no chunk."""

from typing import Final

from bid_ros.core.chunk import NANOSECONDS

PAUSE_S: Final = 0.5
"""A pause that is longer than this has a reason, s. Shorter ones come of a decision that is missed."""


class Quiet:
    """Measures for how long a source has sent no chunk though it may move the arm.

    It reads no clock: every time is a steady one in integer nanoseconds.
    """

    def __init__(self) -> None:
        self._since_ns: int | None = None

    def allowed(self, may_move: bool, steady_ns: int) -> None:
        """Note whether the source may move the arm now."""
        if not may_move:
            self._since_ns = None
        elif self._since_ns is None:
            self._since_ns = steady_ns

    def heard(self, steady_ns: int) -> None:
        """Note a chunk."""
        if self._since_ns is not None:
            self._since_ns = steady_ns

    def silent_s(self, steady_ns: int) -> float:
        """Return s without a chunk; 0 while the source may not move the arm, or up to ``PAUSE_S``."""
        silent_s = 0.0 if self._since_ns is None else (steady_ns - self._since_ns) / NANOSECONDS
        return silent_s if silent_s > PAUSE_S else 0.0
