"""The last decision, aligned by time with the next one."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.arrays import as_array

JITTER: Final = 0.05  # of a step: stamps of cameras differ by that much from the grid, and still lie on it


class Overlap(NamedTuple):
    """The part of the last decision that has not passed yet.

    Attributes:
        previous: ``(H - e, D)``, its rows from ``e`` on. Row ``i`` has the same time as row ``i`` of a new prediction.
        executed: e, steps of the time grid between the two decisions; rounded up where rows are interpolated.
        steps: the same, not rounded where rows are interpolated.
    """

    previous: NDArray[np.float64]
    executed: int
    steps: float


def committed_rows(previous: NDArray[np.float64], observation_steps: int, delay: int) -> NDArray[np.float64]:
    """Return the rows before ``To - 1 + q``, the first that a decision can change: those that are executed before it.

    Args:
        previous: ``(H - e, D)``, see :class:`Overlap`. It may end earlier.
        observation_steps: To.
        delay: q, steps that pass before the decision arrives.
    """
    return previous[: observation_steps - 1 + delay]


class DecisionMemory:
    """Remembers the last decision on its time grid.

    It compares stamps and never counts decisions. So a decision that was skipped or comes late still overlaps with the
    right rows. The stamp of a decision is the time of its newest observation. Every prediction of a policy has the same
    number of past rows, so the shift of the stamps is the shift of the rows.

    Args:
        between: decisions are made between the steps of the grid too. Then the rows of the last one are interpolated to
            the instants of the next one. Otherwise they are shifted to the nearest step.
    """

    def __init__(self, between: bool = False) -> None:
        self._between = between
        # Stamp and dt in ns, actions (H, D).
        self._last: tuple[int, int, NDArray[np.float64]] | None = None

    def reset(self) -> None:
        """Forget the last decision, as at the start of an episode."""
        self._last = None

    def remember(self, stamp_ns: int, dt_ns: int, actions: ArrayLike) -> None:
        """Replace the remembered decision.

        Args:
            stamp_ns: time of its newest observation, ns.
            dt_ns: time between two rows, ns.
            actions: ``(H, D)``, the decision, past rows included, raw action units.

        Raises:
            DecodingError: if ``actions`` is not a non-empty matrix or ``dt_ns`` is not positive.
        """
        values = np.array(as_array(actions))
        if values.ndim != 2 or 0 in values.shape:
            raise DecodingError(f"a decision has shape {values.shape}; valid is (H, D) with H, D >= 1")
        if dt_ns <= 0:
            raise DecodingError(f"a decision has dt {dt_ns} ns; valid is a positive time")
        values.setflags(write=False)
        self._last = stamp_ns, dt_ns, values

    def change(self, stamp_ns: int, changed: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Change the remembered decision if it is the one of ``stamp_ns``, because another motion is executed.

        Args:
            stamp_ns: time of its newest observation, ns.
            changed: returns the actions ``(H, D)`` that are executed, for those that were decided.
        """
        if self._last is not None and self._last[0] == stamp_ns:
            self.remember(stamp_ns, self._last[1], changed(self._last[2]))

    def previous_for(self, stamp_ns: int) -> Overlap | None:
        """Return the rest of the last decision at ``stamp_ns``.

        All columns are interpolated linearly, rotations too: their six-number form is made orthogonal again before it
        is executed. None: there is no decision, all of it has passed, or ``stamp_ns`` lies before it.
        """
        if self._last is None:
            return None
        start_ns, dt_ns, actions = self._last
        passed_ns, rows = stamp_ns - start_ns, actions.shape[0]
        executed = int((2 * passed_ns + dt_ns) // (2 * dt_ns))
        if not self._between or abs(passed_ns - executed * dt_ns) <= JITTER * dt_ns:
            return Overlap(actions[executed:], executed, executed) if 0 <= executed < rows else None
        before, part_ns = divmod(passed_ns, dt_ns)
        if not 0 <= before < rows - 1:
            return None
        share = part_ns / dt_ns
        between = (1.0 - share) * actions[before:-1] + share * actions[before + 1 :]
        return Overlap(between, before + 1, before + share)
