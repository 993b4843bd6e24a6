"""Converts messages to values and back."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, PoseStamped, TransformStamped, Vector3
from numpy.typing import ArrayLike
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import Decision as DecisionMessage
from bid_msgs.msg import EpisodeEvent
from bid_ros.cameras.model import focal_px
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ChunkError
from bid_ros.core.observation import Observation
from bid_ros.core.outcome import CLASSES, EpisodeOutcome
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.task import Task

if TYPE_CHECKING:
    from bid_ros.policy.decide import DecisionRecord
    from bid_ros.replay.cue import Cue


def set_time(message: Time, stamp_ns: int) -> None:
    """Fill a time message that exists."""
    message.sec, message.nanosec = divmod(stamp_ns, NANOSECONDS)


def time_message(stamp_ns: int) -> Time:
    """Return the time message of ``stamp_ns``."""
    message = Time()
    set_time(message, stamp_ns)
    return message


def header(stamp_ns: int, frame_id: str = "") -> Header:
    """Return the header of a message."""
    return Header(stamp=time_message(stamp_ns), frame_id=frame_id)


def duration_message(duration_ns: int) -> Duration:
    """Return the duration message of ``duration_ns``."""
    return Duration(sec=duration_ns // NANOSECONDS, nanosec=duration_ns % NANOSECONDS)


def chunk_to_message(chunk: ActionChunk, task: Task, robot: str, frame_prefix: str = "") -> ChunkMessage:
    """Return the message of a chunk for a robot, with ``frame_prefix`` before the name of the chunk's frame."""
    return ChunkMessage(
        header=header(chunk.stamp_ns, frame_prefix + chunk.frame_id),
        robot=robot,
        dt=duration_message(chunk.dt_ns),
        source=chunk.source,
        sequence=chunk.sequence,
        features=[feature.name for feature in task.action],
        steps=chunk.actions.shape[0],
        dims=chunk.actions.shape[1],
        scale=chunk.scale,
        actions=float64_array(chunk.actions),
    )


def chunk_from_message(message: ChunkMessage, task: Task, slowed: bool = False) -> ActionChunk:
    """Return the chunk of a message.

    Args:
        message: the message.
        task: layout of the actions.
        slowed: it comes from safety, which alone may have slowed the motion.

    Raises:
        ChunkError: the sizes do not fit the data, the features are not those of the task, or the scale is not valid.
    """
    expected = [feature.name for feature in task.action]
    if list(message.features) != expected:
        raise ChunkError(f"a chunk from '{message.source}' has features {list(message.features)}; valid are {expected}")
    if message.steps * message.dims != len(message.actions):
        raise ChunkError(
            f"a chunk from '{message.source}' says {message.steps} x {message.dims} "
            f"but holds {len(message.actions)} values"
        )
    if not (0.0 < message.scale <= 1.0 if slowed else message.scale == 1.0):
        valid = "above 0, up to 1" if slowed else "1: only safety slows a chunk"
        raise ChunkError(f"a chunk from '{message.source}' has scale {message.scale:g}; valid is {valid}")
    actions = np.array(message.actions, dtype=np.float64).reshape(message.steps, message.dims)
    return ActionChunk(
        stamp_ns=stamp_to_ns(message.header.stamp),
        dt_ns=stamp_to_ns(message.dt),
        actions=actions,
        frame_id=message.header.frame_id,
        source=message.source,
        sequence=message.sequence,
        scale=message.scale,
    )


def decision_to_message(record: DecisionRecord, task: Task, **fields: Any) -> DecisionMessage:
    """Return the message of a decision. ``fields`` are those that the record does not determine."""
    choice, selection = record.choice, record.choice.selection
    weak = () if record.weak is None else record.weak
    previous = () if choice.previous is None else choice.previous
    criteria = () if selection is None else ("backward", "forward", "total", "kept")
    return DecisionMessage(
        header=header(record.stamp_ns, task.base_frame),
        dt=duration_message(task.dt_ns),
        current_step=task.observation_steps - 1,
        steps=task.horizon,
        dims=task.action_dim,
        samples=len(record.strong),
        weak_samples=len(weak),
        screened=record.screened,
        strong=float32_array(record.strong),
        weak=float32_array(weak),
        selected=float32_array(choice.actions),
        selected_index=choice.index,
        previous=float32_array(previous),
        previous_steps=len(previous),
        encode_time=record.encode_ns / NANOSECONDS,
        sample_time=record.sample_ns / NANOSECONDS,
        choose_time=record.choose_ns / NANOSECONDS,
        **{name: getattr(selection, name).tolist() for name in criteria},
        **fields,
    )


def observed_fields(observation: Observation) -> dict[str, Any]:
    """Return the fields of a decision's message that say on what it was decided."""
    return {
        "observed": list(observation.samples_ns),
        "observed_stamps": [time_message(stamp) for stamps in observation.samples_ns.values() for stamp in stamps],
        "observation_digest": observation.digest(),
    }


def cue_to_message(cue: Cue, robot: str) -> DecisionMessage:
    """Return the message that asks for the decision of a cue: how it was made, and the samples of its observation.

    The text that the policy was asked with is in the place of the frame.
    """
    assert cue.observation is not None, "only such a cue can be decided on"
    message = DecisionMessage(
        header=header(cue.stamp_ns, cue.text), robot=robot, stream=cue.stream, **observed_fields(cue.observation)
    )
    if cue.recorded is not None:
        setting = cue.recorded.setting
        for name in ("decoder", "samples", "action_horizon", "seed"):
            setattr(message, name, getattr(setting, name))
        message.delay_steps = -1 if setting.delay is None else setting.delay
    return message


def fill_outcome(event: EpisodeEvent, outcome: EpisodeOutcome) -> None:
    """Say in the event of an episode how it ended."""
    event.success, event.outcome, event.outcome_code = outcome.success, outcome.text, outcome.code
    event.outcome_class = CLASSES.index(outcome.kind)


def point(position: ArrayLike) -> Point:
    """Return the point message of a position (3,) in m."""
    x, y, z = map(float, np.asarray(position))
    return Point(x=x, y=y, z=z)


def set_pose(message: Pose, position: ArrayLike, quaternion: ArrayLike) -> None:
    """Fill a pose message that exists, with a position (3,) in m and a quaternion (4,) xyzw."""
    place, turn = message.position, message.orientation
    place.x, place.y, place.z = np.asarray(position, dtype=np.float64).tolist()
    turn.x, turn.y, turn.z, turn.w = np.asarray(quaternion, dtype=np.float64).tolist()


def pose_message(position: ArrayLike, quaternion: ArrayLike) -> Pose:
    """Return the pose message of a position (3,) in m and a quaternion (4,) xyzw."""
    message = Pose()
    set_pose(message, position, quaternion)
    return message


def pose_stamped(stamp_ns: int, frame_id: str, position: ArrayLike, quaternion: ArrayLike) -> PoseStamped:
    """Return the stamped pose message, as :func:`pose_message`."""
    return PoseStamped(header=header(stamp_ns, frame_id), pose=pose_message(position, quaternion))


def transform_message(
    stamp_ns: int, parent: str, child: str, position: ArrayLike, quaternion: ArrayLike
) -> TransformStamped:
    """Return the transform of the frame ``child``: origin (3,) m and axes (4,) xyzw in the frame ``parent``."""
    pose = pose_message(position, quaternion)
    message = TransformStamped(header=header(stamp_ns, parent), child_frame_id=child)
    message.transform.translation = Vector3(x=pose.position.x, y=pose.position.y, z=pose.position.z)
    message.transform.rotation = pose.orientation
    return message


def camera_info(width: int, height: int, fovy: float | None) -> CameraInfo:
    """Return the calibration of an ideal camera: square pixels, no distortion, optical axis through the image's middle.

    Args:
        width, height: size of the image in px.
        fovy: vertical field of view in degrees. None leaves the matrices zero, which means "not calibrated" in ROS.
    """
    message = CameraInfo(width=width, height=height)
    if fovy is not None:
        # In ROS, 0 is the middle of the first pixel.
        focal, x, y = focal_px(fovy, height), width / 2 - 0.5, height / 2 - 0.5
        message.distortion_model, message.d = "plumb_bob", [0.0] * 5
        message.k = [focal, 0.0, x, 0.0, focal, y, 0.0, 0.0, 1.0]
        message.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        message.p = [focal, 0.0, x, 0.0, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0]
    return message


def float64_array(values: ArrayLike) -> array.array[float]:
    """Return a flat float64 array for a message, as :func:`float32_array`."""
    return array.array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def float32_array(values: ArrayLike) -> array.array[float]:
    """Return a flat float32 array for a message, without a Python loop over the values."""
    return array.array("f", np.ascontiguousarray(values, dtype=np.float32).tobytes())
