"""The origin of a policy's action positions: the base frame's origin, or the newest observed position.

Points of a plane, such as those of Push-T, and joints count as positions.

A policy may predict positions relative to the tool (Chi et al., "Universal Manipulation Interface", RSS 2024, Section
III-B). What the cameras show relative to the tool is the same everywhere in the workspace. Sampled chunks are moved
back into the base frame at once, so decoders compare all of them in that one fixed frame.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.policy.normalise import LinearNormaliser

ActionReference = Literal["base", "tool"]
POSITIONS: Final = ("position", "points", "joints")  # kinds of features


def check_reference(task: Task, reference: ActionReference) -> None:
    """Raise BidError if ``reference`` is ``tool`` and the task does not observe every position that it commands."""
    if reference != "tool":
        return
    counted = {name for name, _ in _observed_positions(task, reference)}
    if not counted:
        raise BidError(
            f"action_reference is 'tool', but task '{task.name}' commands no position or joints that it observes; "
            "valid is base"
        )
    if alone := [item.name for item in task.action if item.kind in POSITIONS and item.name not in counted]:
        raise BidError(
            f"action_reference is 'tool', but task '{task.name}' commands {', '.join(alone)} without an observation of "
            "that name; valid is one, or action_reference=base"
        )


def action_anchor(
    task: Task, reference: ActionReference, newest: Mapping[str, NDArray[Any]], rows: tuple[int, ...] = ()
) -> NDArray[np.float64]:
    """Return the offset that is added to predicted actions: ``(*rows, D)``, task units.

    Args:
        task: layout of the actions.
        reference: ``base``: the offset is 0. ``tool``: the offset of a position is the newest observed value of the
            same name; rotations and the gripper's width stay absolute.
        newest: newest value ``(*rows, S)`` of each vector feature, raw units.
        rows: leading shape, for many observations at once.
    """
    anchor = np.zeros((*rows, task.action_dim))
    for name, own in _observed_positions(task, reference):
        anchor[..., own] = newest[name]
    return anchor


def action_bounds(
    task: Task,
    reference: ActionReference,
    newest: Mapping[str, NDArray[Any]],
    demonstrated: Mapping[str, LinearNormaliser],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the box ``(D,)``, ``(D,)`` that sampled actions are clipped to, task units; infinite if unbounded.

    The sampler clips a prediction in the base frame to the range of the training data. A prediction relative to the
    tool can leave that range: an offset that is harmless at one place ends below the table at another. So its positions
    are clipped to the box of the demonstrated tool positions, extended to the present tool position.

    Args:
        task: layout of the actions.
        reference: ``base``: no bounds. ``tool``: bounds of every position that is also observed.
        newest: newest value ``(S,)`` of each vector feature, raw units.
        demonstrated: range of each vector feature in the training data.
    """
    low, high = np.full(task.action_dim, -np.inf), np.full(task.action_dim, np.inf)
    for name, own in _observed_positions(task, reference):
        low[own] = np.minimum(demonstrated[name].minimum, newest[name])
        high[own] = np.maximum(demonstrated[name].maximum, newest[name])
    return low, high


def _observed_positions(task: Task, reference: ActionReference) -> list[tuple[str, slice]]:
    """Return name and columns of every commanded position that counts from the observed one: none for ``base``."""
    names = {feature.name for feature in task.vectors if reference == "tool"}
    return [(item.name, own) for item, own in task.action_columns if item.kind in POSITIONS and item.name in names]
