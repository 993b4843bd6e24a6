"""When a recorded message is due: at recorded speed, faster, slower, or step by step."""

import threading
import time
from collections.abc import Callable
from typing import Final

BEHIND_NS: Final = 100_000_000


class ReplayPace:
    """Holds a replay back until its next message is due. One thread waits, others may pause and step.

    Args:
        speed: times the recorded speed; 0: as fast as decisions are made.
        paused: whether it begins paused.
        clock: steady time, ns.

    Attributes:
        stalled_ns: time that decisions took longer than the recording leaves, so far.
    """

    def __init__(self, speed: float, paused: bool = False, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._speed, self._paused, self._clock = speed, paused, clock
        self._steps = 0
        self._news = threading.Condition()
        self._closing = False
        self._from: tuple[int, int] | None = None
        self.stalled_ns = 0

    @property
    def paused(self) -> bool:
        """Whether it stands until the next step."""
        return self._paused

    def pause(self, paused: bool) -> None:
        """Stand, or go on."""
        with self._news:
            self._paused, self._from = paused, None
            self._news.notify_all()

    def step(self) -> None:
        """Go on to the next decision while paused."""
        with self._news:
            self._steps += 1
            self._news.notify_all()

    def close(self) -> None:
        """Let every wait return."""
        with self._news:
            self._closing = True
            self._news.notify_all()

    def wait(self, stamp_ns: int) -> bool:
        """Wait until a message is due that was received at ``stamp_ns``. Return whether the replay goes on.

        A replay that has fallen behind by more than :data:`BEHIND_NS` goes on from there: it does not rush.
        """
        with self._news:
            self._news.wait_for(lambda: self._closing or not self._paused or self._steps)
            if self._closing or self._paused or not self._speed:
                return not self._closing
            now_ns = self._clock()
            if self._from is None:
                self._from = now_ns, stamp_ns
            begun_ns, first_ns = self._from
            due_ns = begun_ns + round((stamp_ns - first_ns) / self._speed)
            if due_ns < now_ns - BEHIND_NS:
                self.stalled_ns += now_ns - due_ns
                self._from = now_ns, stamp_ns
            while (left := due_ns - self._clock()) > 0 and not self._closing:
                self._news.wait(left / 1e9)
            return not self._closing

    def stepped(self) -> None:
        """Note that a decision was made: a step is done."""
        with self._news:
            self._steps = max(0, self._steps - 1)
