"""Measures of how smoothly and how consistently a robot was commanded."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

JERK_ROWS: Final = 4
"""Commands of which a third derivative can be taken."""
SWITCH_SHARE: Final = 0.25
"""Decisions that lie further apart than this share of the training actions' spread count as a change of strategy."""
REACTION_SHARE: Final = 0.5
"""A command has reacted once it differs by this share of the jump from what it would have been without."""


def rms_jerk(commands: ArrayLike, dt: float) -> float:
    """Return the root mean square length of the third derivative of commands ``(T, D)``, units/s^3; 0 if T < 4.

    Args:
        commands: executed actions, one every ``dt`` s.
        dt: s between two of them.
    """
    jerks = np.diff(np.asarray(commands, dtype=np.float64), n=3, axis=0) / dt**3
    return float(np.sqrt((jerks**2).sum(axis=1).mean())) if len(jerks) else 0.0


def overlap_distance(new: ArrayLike, previous: ArrayLike, observation_steps: int) -> float | None:
    """Return the mean L2 distance between two consecutive decisions where both speak of the same future instants.

    Args:
        new: ``(H, D)`` decision.
        previous: ``(H - e, D)``, the one before, its row i at the instant of row i of ``new``.
        observation_steps: To; rows before ``To - 1`` have passed and are not compared.

    Returns:
        The distance in action units, None if no instant is shared.
    """
    before = np.asarray(previous, dtype=np.float64)[observation_steps - 1 :]
    if not len(before):
        return None
    rows = slice(observation_steps - 1, observation_steps - 1 + len(before))
    return float(np.linalg.norm(np.asarray(new, dtype=np.float64)[rows] - before, axis=1).mean())


def reaction_steps(commands: ArrayLike, without: ArrayLike, jump_step: int, distance: float) -> int | None:
    """Return how many steps after a jump of the block the commands show it.

    The two runs share scene, noise and samples and differ only by the jump, so until the policy sees it their commands
    are equal.

    Args:
        commands: ``(T, D)`` executed actions of the run with the jump.
        without: ``(T', D)`` those of the same run without it.
        jump_step: step before whose decision the block jumped.
        distance: length of the jump, px.

    Returns:
        Steps from the jump to the first command that differs by :data:`REACTION_SHARE` of the jump; None if none
        does while both runs last.
    """
    first, second = np.asarray(commands, dtype=np.float64), np.asarray(without, dtype=np.float64)
    last = min(len(first), len(second))
    apart = np.linalg.norm(first[jump_step:last] - second[jump_step:last], axis=1) >= REACTION_SHARE * distance
    return int(np.argmax(apart)) if apart.any() else None
