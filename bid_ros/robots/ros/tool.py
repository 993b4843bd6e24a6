"""Where the tool is: from measured joints and the URDF, or from the transforms that the robot publishes.

Source: Foote, "tf: The Transform Library", TePRA 2013 (the tree of frames); geometry2, ``tf2/src/buffer_core.cpp``
(static transforms hold at any time; the path between two frames leads over the nearest frame above both).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion, quaternion_from_matrix
from bid_ros.robots.bus import Bus, Channel, Heard
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.joints import JointReading, Timestamp
from bid_ros.robots.ros.kinematics import ChainKinematics

DEPTH: Final = 100  # messages between two looks, as tf2 keeps; each publisher of static transforms has one
MOST_NAMED: Final = 20  # frames in a sentence
LENGTH_TOLERANCE: Final = 0.01  # of a quaternion, as in tf2
TYPE: Final = "tf2_msgs/msg/TFMessage"

Pose = tuple[Array, Array]
"""Position ``(3,)`` m and rotation ``(3, 3)``."""


@dataclass(frozen=True, eq=False)
class Transform:
    """A frame in the one above it.

    Attributes:
        parent: name of the frame above.
        position, rotation: ``(3,)`` m and ``(3, 3)``.
        timestamp: when it was measured; None: it is static.
    """

    parent: str
    position: Array
    rotation: Array
    timestamp: Timestamp | None


@dataclass(frozen=True)
class FramePose:
    """A frame in another one, as its transforms say.

    Attributes:
        position, rotation: ``(3,)`` m and ``(3, 3)``.
        oldest: when the oldest transform between them was measured; static ones do not count.
        frame: the frame of that oldest transform.
    """

    position: Array
    rotation: Array
    oldest: Timestamp
    frame: str


class TransformReader:
    """Keeps the newest transform of every frame. Any thread may use it.

    The transforms between two frames are those that came last. Nothing is interpolated: a robot's joints come in one
    message, with one stamp. A message that repeats a stamp, or has an older one, is no new measurement.

    Args:
        bus: of the robot.
        moving, static: topics of ``tf2_msgs/msg/TFMessage``.
    """

    def __init__(self, bus: Bus, moving: str, static: str) -> None:
        self._bus, self._moving, self._static = bus, moving, static
        self._lock = threading.Lock()
        self._above: dict[str, Transform] = {}
        self._bad: dict[str, str] = {}  # what is wrong with the newest transform of a frame

    @property
    def where(self) -> str:
        """Both topics, for a sentence."""
        return f"{self._bus.full_name(self._moving)} and {self._bus.full_name(self._static)}"

    def begin(self) -> None:
        """Begin to listen, and forget what came before. Raises ArmError if the message type is not there."""
        with self._lock:
            self._above, self._bad = {}, {}
        self._bus.listen(Channel(self._moving, TYPE, "best_effort", depth=DEPTH))
        self._bus.listen(Channel(self._static, TYPE, latched=True, depth=DEPTH))

    def look(self) -> None:
        """Take what has arrived, without waiting."""
        with self._lock:
            for heard in self._bus.news(self._static):
                self._take(heard, static=True)
            for heard in self._bus.news(self._moving):
                self._take(heard, static=False)

    def missing(self, base: str, frame: str) -> str:
        """Return one sentence if nothing says where a frame is in a base; otherwise an empty text."""
        with self._lock:
            bad = [self._bad[name] for name in (base, frame) if name in self._bad]
            seen = sorted({*self._above, *(transform.parent for transform in self._above.values())})
            paths = self._path(base), self._path(frame)
            moves = any(self._above[name].timestamp is not None for name in self._between(*paths))
        what = f"no transform from frame '{base}' to frame '{frame}' came on {self.where}"
        if bad:
            return bad[0]
        if not seen:
            return f"{what}: no frame came at all"
        for name in (base, frame):
            if name not in seen:
                return f"{what}: frame '{name}' never came; the frames that came are {_listed(seen)}"
        if paths[0][-1] != paths[1][-1]:
            return f"{what}: they are not connected: one is below '{paths[0][-1]}', the other below '{paths[1][-1]}'"
        return "" if moves else f"the transform from frame '{base}' to frame '{frame}' on {self.where} is static"

    def find(self, base: str, frame: str) -> FramePose:
        """Return where a frame is in a base, by the newest transforms. Raises ArmError if nothing says it."""
        with self._lock:
            up, down = self._path(base), self._path(frame)
            between = self._between(up, down)
            moving = [(timestamp, name) for name in between if (timestamp := self._above[name].timestamp) is not None]
            if up[-1] == down[-1] and moving:
                from_base = self._pose([name for name in up if name in between])
                from_frame = self._pose([name for name in down if name in between])
                oldest, name = min(moving, key=lambda item: item[0].steady_ns)
                inverse = from_base[1].T
                return FramePose(inverse @ (from_frame[0] - from_base[0]), inverse @ from_frame[1], oldest, name)
        raise ArmError(self.missing(base, frame))

    def problem(self, base: str, frame: str) -> str:
        """Return one sentence if the newest transform between two frames is no pose; otherwise an empty text.

        Such a transform is not taken: the one before it stays, and grows old.
        """
        with self._lock:
            wrong = [name for name in self._between(self._path(base), self._path(frame)) if name in self._bad]
            return self._bad[wrong[0]] if wrong else ""

    def _path(self, frame: str) -> list[str]:
        """Return the frames from one to the root of its tree."""
        path = [frame]
        while (above := self._above.get(path[-1])) is not None and above.parent not in path:
            path.append(above.parent)
        return path

    def _between(self, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """Return the frames of two paths to the root whose transforms lie between the paths' first frames."""
        names = [name for name in (*one, *other) if (name in one) is not (name in other)]
        return [name for name in names if name in self._above]

    def _pose(self, names: Sequence[str]) -> Pose:
        """Return the pose of the first frame in the one above the last."""
        position, rotation = np.zeros(3), np.eye(3)
        for name in names:
            above = self._above[name]
            position, rotation = above.position + above.rotation @ position, above.rotation @ rotation
        return position, rotation

    def _take(self, heard: Heard, static: bool) -> None:
        for message in heard.message.transforms:
            name, timestamp = message.child_frame_id.lstrip("/"), Timestamp.of(heard, message.header.stamp)
            before = self._above.get(name)
            if (
                not static
                and before is not None
                and before.timestamp is not None
                and timestamp.repeats(before.timestamp)
            ):
                continue
            place, turn = message.transform.translation, message.transform.rotation
            position, quaternion = np.array([place.x, place.y, place.z]), np.array([turn.x, turn.y, turn.z, turn.w])
            self._bad.pop(name, None)
            if not np.isfinite(position).all() or not abs(np.linalg.norm(quaternion) - 1.0) < LENGTH_TOLERANCE:
                self._bad[name] = self._refused(name, position, quaternion)
                continue
            parent, rotation = message.header.frame_id.lstrip("/"), matrix_from_quaternion(quaternion)
            self._above[name] = Transform(parent, position, rotation, None if static else timestamp)

    def _refused(self, name: str, position: Array, quaternion: Array) -> str:
        values = f"{position.tolist()} m and the quaternion {quaternion.tolist()}"
        return f"{self.where} say {values} of frame '{name}'; valid are finite numbers and a quaternion of length 1"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class ToolPose:
    """The tool in the base frame.

    Attributes:
        position, rotation: ``(3,)`` m and ``(3, 3)``.
        quaternion: ``(4,)`` xyzw, the same turn.
        stamp_ns: wall time of what it was computed from, ns; of the oldest of it.
    """

    position: Array
    rotation: Array
    quaternion: Array
    stamp_ns: int


class ToolSource(Protocol):
    """Says where the tool is."""

    def pose(self, reading: JointReading) -> ToolPose:
        """Return where the tool is, for a reading of the joints."""


class ModelTool:
    """The tool by forward kinematics. One thread only.

    Args:
        kinematics: of the arm and its tool, which nobody else changes.
    """

    def __init__(self, kinematics: ChainKinematics) -> None:
        self._kinematics = kinematics
        self._last: tuple[bytes, tuple[Array, Array, Array]] | None = None

    def pose(self, reading: JointReading) -> ToolPose:
        """Return where the joints have the tool."""
        key = reading.joints.tobytes()
        if self._last is None or self._last[0] != key:
            position, rotation = self._kinematics.forward(reading.joints)
            self._last = key, (position, rotation, quaternion_from_matrix(rotation))
        return ToolPose(*self._last[1], reading.stamp_ns)


class TransformTool:
    """The tool by the robot's transforms, with its own place in the tool link.

    Args:
        config: names the frames, and has the tool.
        bus: of the robot.
    """

    def __init__(self, config: RosConfig, bus: Bus) -> None:
        self._base, self._link = config.tool_frames
        self._timeout_s, self._topic = config.state_timeout_s, bus.full_name(config.tf)
        self._transforms = TransformReader(bus, config.tf, config.tf_static)
        self._offset = np.array(config.tool_offset)
        self._turn = matrix_from_quaternion(config.tool_quaternion)

    def begin(self) -> None:
        """Begin to listen. Raises ArmError if the message type is not there."""
        self._transforms.begin()

    def problem(self) -> str:
        """Return one sentence if no new transform says where the tool is; otherwise an empty text."""
        self._transforms.look()
        wrong = self._transforms.problem(self._base, self._link)
        if wrong:
            return wrong
        try:
            placed = self._transforms.find(self._base, self._link)
        except ArmError as error:
            return str(error)
        if placed.oldest.age_s() <= self._timeout_s:
            return ""
        what = f"the transform from frame '{self._base}' to frame '{self._link}' is {placed.oldest.age_s():.1f} s old"
        return f"{what}: no new one of frame '{placed.frame}' came on {self._topic}: look at who publishes it"

    def pose(self, reading: JointReading) -> ToolPose:
        """Return where the transforms have the tool. Raises ArmError if they never said it."""
        self._transforms.look()
        link = self._transforms.find(self._base, self._link)
        position, rotation = link.position + link.rotation @ self._offset, link.rotation @ self._turn
        stamp_ns = min(reading.stamp_ns, link.oldest.stamp_ns)
        return ToolPose(position, rotation, quaternion_from_matrix(rotation), stamp_ns)
