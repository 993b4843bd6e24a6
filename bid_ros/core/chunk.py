"""Action chunks on a time grid. bid_ros aligns everything by time, never by counting ticks."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import ChunkError

NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True)
class ActionChunk:
    """Future actions on a fixed time grid: row ``i`` of ``actions`` belongs to ``stamp_ns + i * dt_ns``.

    Attributes:
        stamp_ns: instant of the first action, ROS time in integer nanoseconds. For a policy it is the time of the
            newest observation that the chunk was computed from.
        dt_ns: time between two actions in nanoseconds, positive.
        actions: ``(H, D)`` float64, columns in the order of the task's action features and in their units.
        frame_id: frame in which positions and rotations are given.
        source: sender of the chunk (``policy``, ``teleop``, ``episode``).
        sequence: number of the chunk, counted by its source.
        scale: factor by which safety slowed the motion, above 0 and up to 1; 1: as asked.

    Raises:
        ChunkError: ``actions`` is not a non-empty matrix of numbers, or ``dt_ns`` is not positive. Limits are not
            checked here: the envelope does that, and says which limit a value breaks.
    """

    stamp_ns: int
    dt_ns: int
    actions: NDArray[np.float64]
    frame_id: str = "base"
    source: str = "policy"
    sequence: int = 0
    scale: float = 1.0

    def __post_init__(self) -> None:
        try:
            actions = np.asarray(self.actions, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ChunkError(f"a chunk's actions are not a matrix of numbers: {error}") from error
        if actions.ndim != 2 or 0 in actions.shape:
            raise ChunkError(f"a chunk's actions have shape {actions.shape}; valid is (H, D) with H, D >= 1")
        if self.dt_ns <= 0:
            raise ChunkError(f"a chunk's dt is {self.dt_ns} ns; valid is a positive time")
        object.__setattr__(self, "actions", actions)

    @property
    def horizon(self) -> int:
        """Number of actions H."""
        return int(self.actions.shape[0])

    @property
    def end_ns(self) -> int:
        """Instant at which the chunk ends: the last action lasts one ``dt_ns``."""
        return self.stamp_ns + self.horizon * self.dt_ns

    def covers(self, now_ns: int) -> bool:
        """Whether the chunk has an action for ``now_ns``. ``end_ns`` itself is not covered."""
        return self.stamp_ns <= now_ns < self.end_ns

    def position_at(self, now_ns: int) -> float:
        """Fractional row at ``now_ns``, clipped to the rows that exist."""
        return min(max((now_ns - self.stamp_ns) / self.dt_ns, 0.0), float(self.horizon - 1))
