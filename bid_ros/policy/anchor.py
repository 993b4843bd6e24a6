"""Where a policy's action positions count from: the base frame's origin, or the newest observed position.

A policy that predicts positions from where the tool is (as in Chi et al., "Universal Manipulation Interface", RSS 2024,
Section III-B) needs only what the cameras show relative to the tool, which is the same everywhere in the workspace.
The sampled chunks are moved back into the base frame at once, so decoders compare all of them in that one fixed frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import BidError
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.task import Task

ActionReference = Literal["base", "tool"]
ACTION_REFERENCES: Final = get_args(ActionReference)


def check_reference(task: Task, reference: ActionReference) -> None:
    """Raise BidError if ``reference`` is ``tool`` and the task observes no position that it also commands."""
    if reference == "tool" and not any(_observed_positions(task)):
        raise BidError(
            f"action_reference is 'tool', but task '{task.name}' commands no position that it observes; valid is base"
        )


def action_anchor(
    task: Task, reference: ActionReference, newest: Mapping[str, NDArray[Any]], rows: tuple[int, ...] = ()
) -> NDArray[np.float64]:
    """Return what is added to predicted actions: ``(*rows, D)``, task units.

    Args:
        task: layout of the actions.
        reference: ``base``: nothing is added. ``tool``: the newest observed value of the same name is added to every
            position; rotations and the gripper's width stay absolute.
        newest: newest value ``(*rows, S)`` of each vector feature, raw units.
        rows: leading shape, for many observations at once.
    """
    anchor = np.zeros((*rows, task.action_dim))
    if reference == "tool":
        for name, own in _observed_positions(task):
            anchor[..., own] = newest[name]
    return anchor


def action_bounds(
    task: Task,
    reference: ActionReference,
    newest: Mapping[str, NDArray[Any]],
    demonstrated: Mapping[str, LinearNormaliser],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the box ``(D,)``, ``(D,)`` that sampled actions are kept in, task units; infinite where there is none.

    A prediction in the base frame cannot leave the range of the training data, to which the sampler clips it. One that
    counts from the tool can: what is inside the range from one place is below the table from another. So its positions
    are kept where the demonstrated tool was, stretched to where the tool is now, as it may stand outside.

    Args:
        task: layout of the actions.
        reference: ``base``: no bounds. ``tool``: bounds of every position that is also observed.
        newest: newest value ``(S,)`` of each vector feature, raw units.
        demonstrated: range of each vector feature in the training data.
    """
    low, high = np.full(task.action_dim, -np.inf), np.full(task.action_dim, np.inf)
    if reference == "tool":
        for name, own in _observed_positions(task):
            low[own] = np.minimum(demonstrated[name].minimum, newest[name])
            high[own] = np.maximum(demonstrated[name].maximum, newest[name])
    return low, high


def _observed_positions(task: Task) -> Iterator[tuple[str, slice]]:
    """Yield name and place in an action of every commanded position that is also observed."""
    observed = {feature.name for feature in task.vectors}
    start = 0
    for feature in task.action:
        if feature.kind == "position" and feature.name in observed:
            yield feature.name, slice(start, start + feature.size)
        start += feature.size
