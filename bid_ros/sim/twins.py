"""The twin of each task behind one seam, by the name of the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import TaskError
from bid_ros.sim.scene_state import SceneState
from bid_ros.sim.scenes import PICKING, PLACING

Array = NDArray[np.float64]
Pose: TypeAlias = tuple[Array, Array]


class Truth(Protocol):
    """Where everything is at one instant. For scoring and scripted demonstrations, never for a policy."""

    @property
    def bodies(self) -> Mapping[str, Pose]:
        """What lies in the scene, by name: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame."""


class Twin(Protocol):
    """A robot and its scene, served to a client that cannot tell them from the real ones.

    Attributes:
        bodies: names of what :class:`Truth` has the pose of.
    """

    bodies: tuple[str, ...]

    @property
    def hostname(self) -> str:
        """Address a client connects to."""

    def start(self) -> None:
        """Serve the robot and run the physics; raises ArmError if the address cannot be served."""

    def stop(self) -> None:
        """End the physics and close the connections; calling it again does nothing."""

    def reset(self, seed: int, cup_speed: float) -> object:
        """Lay out the episode of a seed; raises ArmError if the robot is in the way, TaskError for a bad value."""

    def start_path(self) -> None:
        """Let what moves in the scene begin to move."""

    def scene_state(self) -> SceneState:
        """Return what a renderer needs; raises ArmError if the twin does not run."""

    def ground_truth(self) -> Truth:
        """Return where everything is; raises ArmError if the twin does not run."""

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept: ``real_time_factor``, ``overruns``, ``lost_s`` and the twin's own."""


def build_twin(task: str, address: str) -> Twin:
    """Return the twin of a task, not started, that will serve ``address``.

    Raises:
        TaskError: if the task has no twin.
        ArmError: if the address is not one that the twin can serve.
    """
    if task not in TWINS:
        raise TaskError(f"the task '{task}' has no twin; valid are {', '.join(TWINS)}")
    return TWINS[task](address)


# Imported on demand: nobody needs the libraries of a robot they do not have.
def _placing(address: str) -> Twin:
    from bid_ros.sim.franka_twin import FrankaTwin

    return FrankaTwin([address])


def _picking(address: str) -> Twin:
    from bid_ros.sim.ur_controller import UrControllerConfig
    from bid_ros.sim.ur_twin import UrTwin

    return UrTwin(UrControllerConfig(address))


TWINS: Final[Mapping[str, Callable[[str], Twin]]] = {PLACING: _placing, PICKING: _picking}
