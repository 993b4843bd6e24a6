"""What an episode of each task is: how the gripper begins it, and what counts as its end. No ROS, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import TaskError
from bid_ros.sim.geometry import OBJECT_DIAMETER
from bid_ros.sim.picking_scoring import PickingScore
from bid_ros.sim.scenes import PICKING, PLACING
from bid_ros.sim.scoring import PlacementScore
from bid_ros.sim.twins import Pose

Array = NDArray[np.float64]
PENDING: Final = "pending"


@dataclass(frozen=True)
class Setup:
    """How the gripper begins an episode.

    Attributes:
        open_width: asked for until the scene is laid out, m.
        opened: m; a wider gripper counts as open, as it stops a little before the full width.
        held: widths in m between which the fingers hold what the episode begins with; None: it begins with an open
            gripper.
        request: what a person at the robot is asked to do before the start.
    """

    open_width: float
    opened: float
    held: tuple[float, float] | None
    request: str


class Trial(Protocol):
    """The rules of a task's episodes, judged from the states of its twin.

    Attributes:
        setup: how an episode begins.
        bodies: names of what the score needs to know the pose of.
    """

    setup: Setup
    bodies: tuple[str, ...]

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""

    def update(self, now_ns: int, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge one state: ``pending``, ``success`` or ``dropped``.

        Args:
            now_ns: time of the state, not decreasing.
            bodies: pose of every body: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame.
            tool: ``(3,)`` m, base frame.
            gripper_width: m.
        """

    def progress(self, bodies: Mapping[str, Pose]) -> str:
        """Return how far the episode is, in a few words for a person."""


class PlacingTrial:
    """The object begins between the fingers and ends in the cup."""

    setup = Setup(
        open_width=0.08,
        opened=0.07,
        held=(0.6 * OBJECT_DIAMETER, 1.25 * OBJECT_DIAMETER),
        request="put the object between the fingers",
    )
    bodies: tuple[str, ...] = ("cup", "object")

    def __init__(self) -> None:
        self._score = PlacementScore()

    def reset(self) -> None:
        """Forget everything."""
        self._score.reset()

    def update(self, now_ns: int, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge one state by :class:`bid_ros.sim.scoring.PlacementScore`."""
        return self._score.update(now_ns, bodies["cup"][0], *bodies["object"], gripper_width)

    def progress(self, bodies: Mapping[str, Pose]) -> str:
        """Return how far the object is from the cup."""
        return _apart("object", "cup", bodies)


class PickingTrial:
    """The cup begins on the table, before an open gripper, and ends on the saucer."""

    # The pads of a held cup are 60 mm apart; 78 mm are a little less than they open to.
    setup = Setup(open_width=0.085, opened=0.078, held=None, request="put cup and saucer on the table")
    bodies: tuple[str, ...] = ("cup", "saucer")

    def __init__(self) -> None:
        self._score = PickingScore()

    def reset(self) -> None:
        """Forget everything."""
        self._score.reset()

    def update(self, now_ns: int, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge one state by :class:`bid_ros.sim.picking_scoring.PickingScore`."""
        return self._score.update(now_ns, bodies["saucer"][0], *bodies["cup"], tool, gripper_width)

    def progress(self, bodies: Mapping[str, Pose]) -> str:
        """Return how far the cup is from the saucer."""
        return _apart("cup", "saucer", bodies)


TRIALS: Final[Mapping[str, Callable[[], Trial]]] = {PLACING: PlacingTrial, PICKING: PickingTrial}


def build_trial(task: str) -> Trial:
    """Return the rules of a task's episodes.

    Raises:
        TaskError: if the task has none.
    """
    if task not in TRIALS:
        raise TaskError(f"no rules say when an episode of the task '{task}' succeeds; valid are {', '.join(TRIALS)}")
    return TRIALS[task]()


def _apart(one: str, other: str, bodies: Mapping[str, Pose]) -> str:
    apart = float(np.linalg.norm((bodies[one][0] - bodies[other][0])[:2]))
    return f"{one} to {other} {1e3 * apart:4.0f} mm"
