"""Where the tool is: from measured joints and the URDF, or from the transforms that the robot publishes."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion, quaternion_from_matrix
from bid_ros.robots.bus import Bus
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.joints import JointReading
from bid_ros.robots.ros.kinematics import ChainKinematics
from bid_ros.robots.ros.transforms import TransformReader


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
