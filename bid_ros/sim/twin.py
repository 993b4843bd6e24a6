"""The twin of a robot, and what a task puts into it, each behind a seam.

A robot brings its own twin (:class:`Twin`): physics, and a server that speaks the robot's protocol. A task brings what
stands around it (:class:`TwinScene`) and what happens there (:class:`World`).
"""

import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bid_ros.sim.loop import StepLoop

Array = NDArray[np.float64]
Pose: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True)
class SceneState:
    """Everything that a renderer needs, at one instant.

    Attributes:
        stamp_ns: wall time.
        qpos: ``(nq,)``; mocap_pos: ``(bodies, 3)`` m; mocap_quat: ``(bodies, 4)`` wxyz.
    """

    stamp_ns: int
    qpos: Array
    mocap_pos: Array
    mocap_quat: Array

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return a copy of the state in MuJoCo's data, as of now."""
        return cls(time.time_ns(), data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())


class Truth(Protocol):
    """Where everything is at one instant. For scoring and scripted demonstrations, never for a policy."""

    @property
    def bodies(self) -> Mapping[str, Pose]:
        """What lies in the scene, by name: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame."""


class World(Protocol):
    """What happens around the robot. All methods belong to the thread that steps the physics."""

    def lay_out(self, layout: Any) -> None:
        """Begin an episode; raises ArmError if the robot is in the way, and changes nothing then."""

    def start_path(self) -> None:
        """Let what moves in the scene begin to move."""

    def before_step(self) -> None:
        """Act on the model before a step of the physics."""

    def ground_truth(self, stamp_ns: int) -> Truth:
        """Return where everything is; the state belongs to ``stamp_ns``."""


class TwinScene(Protocol):
    """What a task puts into the twin of its robot.

    Attributes:
        bodies: names of what :class:`Truth` has the pose of.
    """

    bodies: tuple[str, ...]

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add table, objects and cameras to a robot's MJCF.

        Args:
            scene: the ``mujoco`` element, with the robot in it.
            hand: the body of the gripper, for cameras on the wrist.
        """

    def layout(self, seed: int, speed: float) -> Any:
        """Return how the episode of a seed begins, for :meth:`World.lay_out`.

        Args:
            seed: 0 or more.
            speed: of what moves, m/s.

        Raises:
            TaskError: seed or speed is not valid.
        """

    def world(self, model: Any, data: Any) -> World:
        """Return the world in a compiled MuJoCo model that this scene has furnished, and its data."""


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

    def reset(self, seed: int, speed: float) -> object:
        """Lay out the episode of a seed; raises ArmError if the robot is in the way, TaskError for a bad value."""

    def start_path(self) -> None:
        """Let what moves in the scene begin to move."""

    def scene_state(self) -> SceneState:
        """Return what a renderer needs; raises ArmError if the twin does not run."""

    def ground_truth(self) -> Truth:
        """Return where everything is; raises ArmError if the twin does not run."""

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept: ``real_time_factor``, ``overruns``, ``lost_s`` and the twin's own."""


class SceneTwin:
    """What the twins of this package have in common: a scene whose world is touched between two steps only.

    Args:
        scene: what stands around the robot.
        loop: steps robot and world.

    Attributes:
        bodies: names of what the ground truth has the pose of.
        harms: what a person can do to the robot, by its name in :data:`bid_ros.core.topics.TWIN_HARMS`; any thread may.
    """

    # There from the start of the twin on: the world, and MuJoCo's data.
    _world: World
    _data: Any
    harms: Mapping[str, Callable[[], None]] = MappingProxyType({})

    def __init__(self, scene: TwinScene, loop: StepLoop) -> None:
        self.bodies = scene.bodies
        self._scene, self._loop = scene, loop

    def reset(self, seed: int, speed: float = 0.0) -> Any:
        """Lay out the episode of a seed and return its layout.

        Args:
            seed: of the episode.
            speed: of what moves in the scene, m/s.

        Raises:
            ArmError: if the robot is in the way, or the twin does not run.
            TaskError: if the seed or the speed is not valid.
        """
        layout = self._scene.layout(seed, speed)
        self._loop.call(lambda: self._world.lay_out(layout))
        return layout

    def start_path(self) -> None:
        """Let what moves in the scene begin to move; raises ArmError if the twin does not run."""
        self._loop.call(lambda: self._world.start_path())

    def scene_state(self) -> SceneState:
        """Return the state between two steps; raises ArmError if the twin does not run."""
        return self._loop.call(lambda: SceneState.of(self._data))

    def ground_truth(self) -> Truth:
        """Return where everything is, between two steps; raises ArmError if the twin does not run."""
        return self._loop.call(lambda: self._world.ground_truth(time.time_ns()))

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept, as :meth:`bid_ros.sim.loop.StepLoop.statistics` does."""
        return self._loop.statistics()
