"""Where rows count from: the newest observation, or the row before.

A row up to the current one was predicted from what is observed at it, so it counts from that. A later row counts from
the row before. ``trail`` holds what is observed: ``(c + 1, ...)`` values at the rows up to the current one, ``c``.
"""

import numpy as np

from bid_ros.core.rotation import Array


def accumulated(steps: Array, trail: Array) -> Array:
    """Return rows ``(N, H, S)`` of their differences to what they count from."""
    known = len(trail)
    rows = np.empty_like(steps)
    rows[:, :known] = trail + steps[:, :known]
    rows[:, known:] = rows[:, known - 1, None] + np.cumsum(steps[:, known:], axis=1)
    return rows


def origins(rows: Array, trail: Array) -> Array:
    """Return what rows ``(N, H, ...)`` count from: ``(N, H, ...)``, where ``...`` is ``(S,)`` or ``(3, 3)``."""
    known = len(trail)
    observed = np.broadcast_to(trail, (len(rows), *trail.shape))
    return np.concatenate([observed, rows[:, known - 1 : -1]], axis=1)


def turned(turns: Array, trail: Array, tool: bool) -> Array:
    """Return rotations ``(N, H, 3, 3)`` of their turns from what they count from, about base or tool axes."""
    known = len(trail)
    rows = np.empty_like(turns)
    rows[:, :known] = combined(turns[:, :known], trail, tool)
    for row in range(known, turns.shape[1]):
        rows[:, row] = combined(turns[:, row], rows[:, row - 1], tool)
    return rows


def combined(turn: Array, origin: Array, tool: bool) -> Array:
    """Return the rotation ``(..., 3, 3)`` that a turn about base or tool axes makes of another one."""
    return origin @ turn if tool else turn @ origin


def between(rotation: Array, origin: Array, tool: bool) -> Array:
    """Return the turn ``(..., 3, 3)`` about base or tool axes from ``origin`` to ``rotation``."""
    back = np.swapaxes(origin, -1, -2)
    return back @ rotation if tool else rotation @ back


def along(axes: Array, vectors: Array) -> Array:
    """Return vectors ``(..., 3)`` in the base frame of those along axes ``(..., 3, 3)``."""
    found: Array = np.einsum("...ij,...j->...i", axes, vectors)
    return found


def against(axes: Array, vectors: Array) -> Array:
    """Return vectors ``(..., 3)`` along axes ``(..., 3, 3)`` of those in the base frame."""
    found: Array = np.einsum("...ji,...j->...i", axes, vectors)
    return found
