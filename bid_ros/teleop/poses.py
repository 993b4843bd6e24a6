"""Poses as a device: the tool goes slowly to each pose that a topic names, and rests there. For calibration."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.control.homing import ANGULAR, LINEAR
from bid_ros.control.trajectory import ChunkSource, Move, Trajectory, end_of, turn_to
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.rotation import Array, matrix_from_quaternion, matrix_to_6d
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.core.topics import CALIBRATION_POSE, POSE_TYPE
from bid_ros.teleop.base import DeviceDescriptor, EpisodeStart, TeleopDevice

CLOSED: Final = 0.0  # m: what the gripper holds, such as a board, stays in it


@settings
class PosesSettings:
    """Settings of the poses.

    Attributes:
        speed: factor of the speed of homing.
    """

    speed: Annotated[float, Field(ge=0.05, le=1.0)] = 0.2


class PosesDevice(TeleopDevice):
    """Goes to the newest pose of the topic from where the tool rests; one that comes on the way counts at its end.

    Without a pose the tool holds. The gripper is closed.

    Args:
        task: names the base frame.
        options: how fast.
    """

    def __init__(self, task: Task, options: PosesSettings) -> None:
        self._frame, self._speed = task.base_frame, options.speed
        self._source: ChunkSource | None = None
        self._asked: tuple[Array, Array] | None = None
        self._going: tuple[Array, Array] | None = None

    def begin(self, start: EpisodeStart) -> None:
        """Hold the present pose. What was asked for before does not count."""
        self._asked = None
        self._go(start.tool, start.rotation, start.tool, start.rotation, start.now_ns)

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take the pose to go to, in the base frame."""
        at, turn = message.pose.position, message.pose.orientation
        place, quaternion = np.array([at.x, at.y, at.z]), np.array([turn.x, turn.y, turn.z, turn.w])
        if np.isfinite([*place, *quaternion]).all() and np.linalg.norm(quaternion) > 0.5:
            self._asked = place, matrix_to_6d(matrix_from_quaternion(quaternion))

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next actions: on the way, or at rest."""
        if self._source is None or self._going is None:
            return None
        rests = now_ns >= self._source.start_ns + self._source.trajectory.duration_s * NANOSECONDS
        if rests and self._asked is not None and not _same(self._asked, self._going):
            self._go(*self._going, *self._asked, now_ns)
        return self._source.chunk_at(now_ns, steps, dt_ns)

    def end(self) -> None:
        """Forget the plan."""
        self._source = self._asked = None

    def _go(self, place: Array, turn: Array, to: Array, turned: Array, now_ns: int) -> None:
        way = Move([place, to], LINEAR.at(self._speed))
        turns = turn_to(turn, turned, ANGULAR.at(self._speed))
        trajectory = Trajectory(place, turn, (way,), turns, ((0.0, CLOSED),), end_of((way,), turns))
        self._source, self._going = ChunkSource(trajectory, now_ns, "teleop", self._frame), (to, turned)


def _same(one: tuple[Array, Array], other: tuple[Array, Array]) -> bool:
    return all(np.allclose(mine, theirs, atol=1e-9) for mine, theirs in zip(one, other, strict=True))


def _topics(task: Task, options: Any) -> Mapping[str, str]:
    return {CALIBRATION_POSE: POSE_TYPE}


DEVICE = DeviceDescriptor("poses", PosesDevice, settings=PosesSettings, topics=_topics, prepared=False)
