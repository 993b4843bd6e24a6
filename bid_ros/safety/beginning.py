"""How a chunk begins: how far from the measured tool, and how far from the chunk before at the same instant."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array, matrix_from_6d, matrix_to_6d
from bid_ros.safety.bound import limited
from bid_ros.safety.verdict import Verdict, refused


@dataclass(frozen=True, eq=False)
class ToolMotion:
    """Where a chunk commands the tool at one instant.

    Attributes:
        position: ``(3,)`` m, base frame.
        rotation: ``(3, 3)``, tool to base; None: it commands none.
    """

    position: Array
    rotation: Array | None

    @classmethod
    def between(cls, position: Array, rotation: Array | None, passed: float) -> Self:
        """Return the place at ``passed``, 0 to 1, from the first to the second of one or two rows.

        Args:
            position: ``(1 or 2, 3)`` m.
            rotation: ``(1 or 2, 3, 3)``, or None.
            passed: share of the way.
        """
        turned = None if rotation is None else matrix_from_6d(between(matrix_to_6d(rotation), passed))
        return cls(between(position, passed), turned)


class Beginning:
    """Judges how a chunk begins.

    Args:
        limits: of the task.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def jump(
        self, action: ToolMotion, position: ArrayLike | None, rotation: ArrayLike | None = None
    ) -> Iterator[Verdict]:
        """Yield a refusal if the tool is far from the action for now, or nobody knows where it is.

        Args:
            action: for now.
            position: measured ``(3,)`` m; None: nobody knows it.
            rotation: measured ``(3, 3)``, tool to base; None: it is not judged.
        """
        if position is None:
            yield refused("measurement", "the tool's position is not known, so the jump to the chunk cannot be judged")
            return
        apart, limits = _distance(action.position, np.asarray(position)), self._limits
        yield from limited("jump", "distance from the tool to the action", apart, limits.max_jump, "m")
        if rotation is not None and action.rotation is not None:
            turned = _angle(action.rotation, np.asarray(rotation, dtype=np.float64))
            yield from limited("turn_jump", "angle from the tool to the action", turned, limits.max_turn_jump, "rad")

    def step(self, action: ToolMotion, earlier: ToolMotion) -> Iterator[Verdict]:
        """Yield a refusal if a chunk begins far from what the one before it commands for the same instant."""
        apart, limits, what = _distance(action.position, earlier.position), self._limits, "from the chunk before"
        yield from limited("chunk_step", f"distance {what} to this one", apart, limits.max_chunk_step, "m")
        if action.rotation is not None and earlier.rotation is not None:
            turned = _angle(action.rotation, earlier.rotation)
            yield from limited("chunk_turn", f"angle {what} to this one", turned, limits.max_chunk_turn, "rad")


def between(rows: Array, passed: float) -> Array:
    """Return the row at ``passed``, 0 to 1, between the first two."""
    found: Array = rows[0] + passed * (rows[min(1, len(rows) - 1)] - rows[0])
    return found


def _distance(one: Array, other: Array) -> float:
    # A measured position that is huge but finite overflows. The comparison then refuses infinity.
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(one - other))


def _angle(one: Array, other: Array) -> float:
    """Return the angle between two rotations, rad, from sine and cosine of half of it."""
    apart = one - other
    sine, cosine = math.sqrt(np.vdot(apart, apart) / 8.0), 0.5 * math.sqrt(max(0.0, 1.0 + float(np.vdot(one, other))))
    return 2.0 * math.atan2(sine, cosine)
