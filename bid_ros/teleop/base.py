"""The seam of teleoperation: a device drives the arm instead of the policy, always through the safety node."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task


@dataclass(frozen=True)
class Start:
    """How an episode begins, for a device that drives it.

    Attributes:
        label: of the episode, such as the style of a scripted demonstration.
        seed: of the episode.
        tool: ``(3,)`` position m; rotation: ``(6,)`` rotation_6d; both base frame.
        bodies: positions ``(3,)`` m, base frame, of what the device asked to be told.
        now_ns: ROS time.
    """

    label: str
    seed: int
    tool: Array
    rotation: Array
    bodies: Mapping[str, Array]
    now_ns: int


class TeleopDevice(Protocol):
    """A device. One thread uses it. A class that names this one as its base need not say that it releases nothing."""

    def begin(self, start: Start) -> None:
        """Take the arm at the start of an episode; raises BidError if the device cannot drive it."""

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next ``steps`` actions from ``now_ns`` on, ``dt_ns`` apart; None: nobody drives."""

    def end(self) -> None:
        """Let go of the arm: the episode is over."""

    def close(self) -> None:
        """Release the device."""


@dataclass(frozen=True)
class DeviceDescriptor:
    """A kind of device. Its module has one of these as ``DEVICE``; another package names its own in ``bid_ros.teleop``.

    Attributes:
        name: for example ``scripted``.
        build: from a task to the device, open; raises BidError if it cannot be opened.
        bodies: from a task to the names of what the device must be told the position of; only a twin can.
        styles: from a task to the labels that episodes may have; none: any.
    """

    name: str
    build: Callable[[Task], TeleopDevice]
    bodies: Callable[[Task], tuple[str, ...]] = lambda task: ()
    styles: Callable[[Task], tuple[str, ...]] = lambda task: ()

    def check(self, task: Task, styles: Sequence[str], twin: bool) -> None:
        """Raise BidError unless the device can drive this task's arm, in these styles, in the twin or on the robot."""
        bodies, valid = self.bodies(task), self.styles(task)
        if bodies and not twin:
            raise BidError(
                f"device '{self.name}' works in the twin only: there it is told where {' and '.join(bodies)} are; "
                "leave robot_ip out"
            )
        for style in styles:
            if style not in valid:
                raise BidError(f"style is '{style}'; valid for {task.name} are {', '.join(valid) or 'none'}")
