"""Messages to values and back."""

from __future__ import annotations

import array

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from numpy.typing import ArrayLike, NDArray

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_ros.chunk import NANOSECONDS, ActionChunk
from bid_ros.errors import ChunkError
from bid_ros.stamps import stamp_to_ns
from bid_ros.task import Task


def time_message(stamp_ns: int) -> Time:
    """Time message of ``stamp_ns``."""
    return Time(sec=stamp_ns // NANOSECONDS, nanosec=stamp_ns % NANOSECONDS)


def duration_message(duration_ns: int) -> Duration:
    """Duration message of ``duration_ns``."""
    return Duration(sec=duration_ns // NANOSECONDS, nanosec=duration_ns % NANOSECONDS)


def chunk_to_message(chunk: ActionChunk, task: Task) -> ChunkMessage:
    """Message of a chunk."""
    message = ChunkMessage(
        dt=duration_message(chunk.dt_ns),
        source=chunk.source,
        sequence=chunk.sequence,
        features=[feature.name for feature in task.action],
        steps=chunk.actions.shape[0],
        dims=chunk.actions.shape[1],
        actions=array.array("d", np.ascontiguousarray(chunk.actions).tobytes()),
    )
    message.header.stamp = time_message(chunk.stamp_ns)
    message.header.frame_id = chunk.frame_id
    return message


def chunk_from_message(message: ChunkMessage, task: Task) -> ActionChunk:
    """Chunk of a message.

    Raises:
        ChunkError: the sizes disagree with the data, or the features are not the task's.
    """
    expected = [feature.name for feature in task.action]
    if list(message.features) != expected:
        raise ChunkError(f"a chunk from '{message.source}' has features {list(message.features)}; valid are {expected}")
    if message.steps * message.dims != len(message.actions):
        raise ChunkError(
            f"a chunk from '{message.source}' says {message.steps} x {message.dims} "
            f"but holds {len(message.actions)} values"
        )
    actions = np.array(message.actions, dtype=np.float64).reshape(message.steps, message.dims)
    return ActionChunk(
        stamp_ns=stamp_to_ns(message.header.stamp),
        dt_ns=stamp_to_ns(message.dt),
        actions=actions,
        frame_id=message.header.frame_id,
        source=message.source,
        sequence=message.sequence,
    )


def pose_message(position: ArrayLike, quaternion: ArrayLike) -> Pose:
    """Pose of a position (3,) in m and a quaternion (4,) xyzw."""
    px, py, pz = (float(value) for value in np.asarray(position))
    qx, qy, qz, qw = (float(value) for value in np.asarray(quaternion))
    return Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def pose_stamped(stamp_ns: int, frame_id: str, position: ArrayLike, quaternion: ArrayLike) -> PoseStamped:
    """Stamped pose, as :func:`pose_message`."""
    message = PoseStamped(pose=pose_message(position, quaternion))
    message.header.stamp = time_message(stamp_ns)
    message.header.frame_id = frame_id
    return message


def pose_arrays(pose: Pose) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position (3,) and quaternion (4,) xyzw of a pose message."""
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z]), np.array([q.x, q.y, q.z, q.w])


def float32_array(values: ArrayLike) -> array.array[float]:
    """Flat float32 array as messages want it, without a Python loop over the values."""
    return array.array("f", np.ascontiguousarray(values, dtype=np.float32).tobytes())
