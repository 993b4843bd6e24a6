"""What the arm node asks of a chunk by itself, whatever the safety node lets pass: that it is a chunk, and in time."""

import threading
from collections import deque
from typing import Final

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.clocks import ClockWatch, Instant, foreign_stamp, jump_text
from bid_ros.core.errors import ChunkError
from bid_ros.core.margins import Margins
from bid_ros.core.task import Task
from bid_ros.nodes.ros_messages import chunk_from_message
from bid_ros.safety.envelope import out_of_time

HOP_S: Final = 0.2  # s that a chunk may take from the safety node, where it was in time, on a busy computer
USUAL: Final = 20  # chunks whose ages are usual
# Share of the limit of age from which on a chunk that is older than usual, after a clock was set, is of another clock.
ODD_SHARE: Final = 0.5
TOLD_NS: Final = 2 * NANOSECONDS  # for so long a refusal is the reason why nothing is followed


class ObeyedChunks:
    """Reads the chunks of the safety node, and keeps the reason why the last one is not followed.

    Args:
        task: its action features and limits of age and lead.
        now: both clocks.

    Attributes:
        margins: how near the age of a chunk came to its limit.
    """

    def __init__(self, task: Task, now: Instant) -> None:
        self._task, self._clock = task, ClockWatch(now)
        self._looks = threading.Lock()
        self._set_ns = self._untold_ns = 0  # by which the clock was set, since the last chunk in time, and not told yet
        self._ages_ns: deque[int] = deque(maxlen=USUAL)
        self._refusal, self._refused_ns = "", 0
        self.margins = Margins()

    def read(self, message: ChunkMessage, now: Instant) -> ActionChunk | None:
        """Return the chunk of a message; None if it is no chunk of this task, or not in time.

        A chunk from the future would make the servo ignore every chunk before it. Of one that another clock has stamped
        it would follow rows that are not due yet.
        """
        self._look(now)
        limits = self._task.limits
        try:
            chunk = chunk_from_message(message, self._task, slowed=True)
            who = f"chunks of '{chunk.source}' at the arm node"
            if foreign := foreign_stamp(who, chunk.stamp_ns, now.wall_ns):
                raise ChunkError(foreign)
            if odd := self._of_another_clock(now.wall_ns - chunk.stamp_ns):
                raise ChunkError(f"a chunk of '{chunk.source}' at the arm node {odd}")
            age_s = (now.wall_ns - chunk.stamp_ns) / NANOSECONDS
            self.margins.over("age of a chunk", age_s, limits.max_chunk_age + HOP_S)
            for refusal in out_of_time(chunk, now.wall_ns, limits, HOP_S):
                raise ChunkError(f"a chunk of '{chunk.source}' at the arm node: {refusal.reason}")
        except ChunkError as error:
            self.refuse(str(error), now.steady_ns)
            return None
        self._refusal, self._set_ns = "", 0
        self._ages_ns.append(now.wall_ns - chunk.stamp_ns)
        return chunk

    def _of_another_clock(self, age_ns: int) -> str:
        """Return what is odd about the age of a chunk since this computer's clock was set forward; empty if nothing is.

        A clock of one computer is set for all its nodes, so the ages stay. They do not if the sender is on another one.
        """
        set_ns, usual_ns = self._set_ns, max(self._ages_ns, default=age_ns)
        least_ns = max(usual_ns + set_ns // 2, round(ODD_SHARE * self._task.limits.max_chunk_age * NANOSECONDS))
        if set_ns <= 0 or age_ns <= least_ns:
            return ""
        was, now = usual_ns / NANOSECONDS, age_ns / NANOSECONDS
        return f"is {now:.2f} s old, at most {was:.2f} s before {jump_text(set_ns)}: set the clocks of both computers"

    def refuse(self, reason: str, steady_ns: int) -> str:
        """Note why a chunk is not followed, and return it."""
        self._refusal, self._refused_ns = reason, steady_ns
        return reason

    def refusal(self, steady_ns: int) -> str:
        """Return why the last chunk is not followed; empty if it is, or that was long ago."""
        return self._refusal if steady_ns - self._refused_ns <= TOLD_NS else ""

    def clock_was_set(self, now: Instant) -> str:
        """Return one sentence if the clock of this computer was set since the last look: every chunk is then of no use.

        One from before would be over, or would hide all that come after it.
        """
        self._look(now)
        jump_ns, self._untold_ns = self._untold_ns, 0
        return self.refuse(f"{jump_text(jump_ns)}; older chunks are forgotten", now.steady_ns) if jump_ns else ""

    def _look(self, now: Instant) -> None:
        """Note by how much the clock was set; the threads of chunks and of control both look."""
        with self._looks:
            jump_ns = self._clock.jumped_ns(now)
            self._set_ns, self._untold_ns = self._set_ns + jump_ns, self._untold_ns + jump_ns
