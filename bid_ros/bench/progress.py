"""A progress line of a bench, with the estimated end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TextIO

_ESTIMATED_FROM: Final = 0.01  # share of the work below which an estimate is off by hours
_PERIOD_S: Final = {True: 0.5, False: 15.0}  # between two lines, on a terminal and elsewhere


@dataclass
class Progress:
    """Counts work; time is an argument.

    Args:
        total: work of all episodes that are to be run, in any unit.
        began_s: time of the start, s.
        out: where the line goes; on a terminal it overwrites itself.
    """

    total: float
    began_s: float
    out: TextIO
    done: float = 0.0
    episodes: int = 0
    _shown_s: float = float("-inf")

    def add(self, work: float, episodes: int, now_s: float) -> None:
        """Count, and show the line if it is time to."""
        self.done += work
        self.episodes += episodes
        if now_s - self._shown_s >= _PERIOD_S[self.out.isatty()]:
            self._shown_s = now_s
            self.show(now_s)

    def show(self, now_s: float, last: bool = False) -> None:
        """Write the line."""
        terminal = self.out.isatty()
        self.out.write(f"{chr(13) if terminal else ''}{self.line(now_s)}{chr(10) if last or not terminal else ''}")
        self.out.flush()

    def line(self, now_s: float) -> str:
        """Return the line without its ending."""
        share = self.done / self.total if self.total else 1.0
        spent = now_s - self.began_s
        left = clock(spent * (1 / share - 1)) if share >= _ESTIMATED_FROM else "?"
        return f"{share:4.0%}  {self.episodes} episodes done  {clock(spent)} spent  {left} left   "


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
