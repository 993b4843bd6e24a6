"""Pauses of the arm in an episode of a policy: each above half a second has a reason."""

import threading
from dataclasses import asdict, dataclass
from typing import Any

from bid_ros.safety.quiet import PAUSE_S


@dataclass
class Pause:
    """A time in which the arm followed nothing.

    Attributes:
        episode: index of the episode, from 0.
        at_s: s from the start of the episode to its begin.
        duration_s: s.
        reason: one sentence, as known when the pause became long.
        part: what failed that is no part of the policy, as :mod:`bid_ros.episodes.causes` names it; empty if nothing
            says that anything did.
    """

    episode: int
    at_s: float
    duration_s: float
    reason: str
    part: str = ""


class Pauses:
    """Finds the pauses of a run from what the arm says. One thread may begin and end episodes while another one tells.

    Attributes:
        found: pauses above ``PAUSE_S``, in order.
    """

    def __init__(self) -> None:
        self.found: list[Pause] = []
        self._lock = threading.Lock()
        self._episode: int | None = None
        self._begun_s = self._still_s = 0.0
        self._pause: Pause | None = None

    def begin(self, episode: int, now_s: float) -> None:
        """Begin an episode at a steady time in s; the arm follows nothing yet."""
        with self._lock:
            self._episode, self._pause = episode, None
            self._begun_s = self._still_s = now_s

    def tell(self, moves: bool, reason: str, now_s: float, part: str = "") -> Pause | None:
        """Take what the arm does; return a pause that has become long just now.

        Args:
            moves: it follows a chunk.
            reason: why it may not.
            now_s: steady time, s.
            part: what failed, as :class:`Pause`.
        """
        with self._lock:
            if self._episode is None:
                return None
            duration_s = now_s - self._still_s
            if moves:
                self._close(now_s)
                self._still_s = now_s
            elif self._pause is None and duration_s > PAUSE_S:
                self._pause = Pause(self._episode, self._still_s - self._begun_s, duration_s, reason, part)
                self.found.append(self._pause)
                return self._pause
            elif self._pause is not None and part and not self._pause.part:
                self._pause.reason, self._pause.part = reason, part  # who knows more may take a moment to say it
            return None

    def blamed(self, now_s: float) -> tuple[float, float, Pause | None]:
        """Return the present episode's s in pauses for which a part is to blame, all its s, and the longest of these.

        Args:
            now_s: steady time, s.
        """
        with self._lock:
            if self._pause is not None:
                self._pause.duration_s = now_s - self._still_s
            found = [pause for pause in self.found if pause.part and pause.episode == self._episode]
            longest = max(found, key=lambda pause: pause.duration_s, default=None)
            return sum(pause.duration_s for pause in found), now_s - self._begun_s, longest

    def end(self, now_s: float) -> None:
        """End the episode."""
        with self._lock:
            self._close(now_s)
            self._episode = None

    def _close(self, now_s: float) -> None:
        if self._pause is not None:
            self._pause.duration_s = now_s - self._still_s
        self._pause = None

    def to_list(self) -> list[dict[str, Any]]:
        """Return the pauses for ``run.json``, times rounded to 1 ms."""
        with self._lock:
            rounded = [(pause, round(pause.at_s, 3), round(pause.duration_s, 3)) for pause in self.found]
        return [{**asdict(pause), "at_s": at_s, "duration_s": duration_s} for pause, at_s, duration_s in rounded]

    def __str__(self) -> str:
        """Return one line: how many, for how long together, and the longest with its reason; empty without one."""
        if not self.found:
            return ""
        longest = max(self.found, key=lambda pause: pause.duration_s)
        total = sum(pause.duration_s for pause in self.found)
        return f"{len(self.found)}, {total:.1f} s in all; the longest {longest.duration_s:.1f} s: {longest.reason}"
