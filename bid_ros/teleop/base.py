"""The seam of teleoperation: commands of a person, devices that drive the arm through safety, and their names."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Protocol

import numpy as np
import yaml
from pydantic import Field

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.feature import SOURCE
from bid_ros.core.registry import Registry, collect
from bid_ros.core.rotation import Array
from bid_ros.core.settings import load_yaml, parse_settings, settings
from bid_ros.core.task import Task

MARKS: Final = ("success", "failure", "discard")
AXES: Final = ("x", "y", "z", "roll", "pitch", "yaw")
Axis = Literal["x", "y", "z", "roll", "pitch", "yaw"]


@dataclass(frozen=True, eq=False)
class Offset:
    """How far a device that is moved in space has come since its clutch was closed.

    Attributes:
        position: ``(3,)`` m; rotation: ``(3, 3)``; both in base axes.
        closing: number of the clutch's closing. A new number starts from where the tool is, without a jump.
    """

    position: Array
    rotation: Array
    closing: int


@dataclass(frozen=True, eq=False)
class Command:
    """What a person asks for at one instant.

    Attributes:
        live: the dead man's switch is held. If not, the tool brakes and holds.
        heard: the device is there. One that is silent has not let go of its switch: nobody knows.
        twist: ``(6,)`` shares of the largest speeds, -1 to 1: x, y, z, then turns about x, y, z.
        offset: of a device that is moved in space; it replaces the twist.
        gripper: share of the opening, 0 closed to 1 open; None: as before.
        toggle: close an open gripper, open a closed one.
        mark: ends the episode as a success, a failure or one to discard (``MARKS``); empty: it goes on. Between two
            episodes that a person records, ``success`` starts the next one, ``discard`` takes the last one back, and
            ``failure`` makes a failure of it.
        note: what the person says about the episode; empty: nothing.
        axes: ``(3, 3)`` ahead, left and up of the person, columns in base axes, that the twist means; None: those of
            the steering.
    """

    live: bool = False
    twist: Array = field(default_factory=lambda: np.zeros(6))
    offset: Offset | None = None
    gripper: float | None = None
    toggle: bool = False
    mark: str = ""
    note: str = ""
    heard: bool = True
    axes: Array | None = None


@settings
class Steering:
    """How commands become motions. Every value may change while a person drives.

    Attributes:
        linear_speed: m/s of the tool at full deflection.
        angular_speed: rad/s at full deflection.
        scale: m of the tool for 1 m of a device that is moved in space.
        frame: whose axes a twist means: the robot's base, or the tool.
        locked: axes, in that frame, that do not move.
    """

    linear_speed: Annotated[float, Field(ge=0.005, le=0.5)] = 0.15
    angular_speed: Annotated[float, Field(ge=0.02, le=1.5)] = 0.6
    scale: Annotated[float, Field(ge=0.05, le=3)] = 1.0
    frame: Literal["base", "tool"] = "base"
    locked: tuple[Axis, ...] = ("roll", "pitch")

    @property
    def free(self) -> Array:
        """``(6,)``: 1 for an axis that moves, 0 for a locked one."""
        return np.array([float(axis not in self.locked) for axis in AXES])


@dataclass(frozen=True)
class EpisodeStart:
    """How an episode begins, for a device that drives it.

    Attributes:
        label: of the episode, such as the style of a scripted demonstration.
        seed: of the episode.
        tool: ``(3,)`` position m; rotation: ``(6,)`` rotation_6d; both base frame.
        bodies: positions ``(3,)`` m, base frame, of what the device asked to be told.
        now_ns: ROS time.
        width: m that the gripper is asked for now, which stays; None: that of an episode's start.
    """

    label: str
    seed: int
    tool: Array
    rotation: Array
    bodies: Mapping[str, Array]
    now_ns: int
    width: float | None = None


class TeleopDevice(Protocol):
    """A device. One thread uses it. A class that names this one as its base may leave out what it does not need.

    Attributes:
        problem: why nobody can drive now, one sentence; empty if somebody can.
        held: whether the dead man's switch is held: the person wants the arm. None: nobody knows, as it is silent.
    """

    problem: str = ""
    held: bool | None = None

    def begin(self, start: EpisodeStart) -> None:
        """Take the arm at the start of an episode; raises BidError if the device cannot drive it."""

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next ``steps`` actions from ``now_ns`` on, ``dt_ns`` apart; None: nobody drives."""

    def end(self) -> None:
        """Let go of the arm: the episode is over."""

    def steer(self, steering: Steering) -> None:
        """Take the settings of a person's steering, at the beginning and whenever they change."""

    def look(self) -> None:
        """Note what the person wants while nobody asks for chunks: ``held``, a mark, a note."""

    def take_mark(self) -> str:
        """Return how the person ended the episode since the last call, one of ``MARKS``; empty: it goes on."""
        return ""

    def take_note(self) -> str:
        """Return what the person said since the last call; empty: nothing."""
        return ""

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take a message of a topic that the device's descriptor names, as it arrives."""

    def close(self) -> None:
        """Release the device."""


@dataclass(frozen=True)
class DeviceDescriptor:
    """A kind of device. Its module has one of these as ``DEVICE``; another package names its own in ``bid_ros.teleop``.

    Attributes:
        name: for example ``scripted``.
        build: from a task, and the settings if there are any, to the device, open; raises BidError if it cannot be
            opened.
        bodies: from a task to the names of what the device must be told the position of; only a twin can.
        styles: from a task to the labels that episodes may have; none: any.
        settings: class marked with :func:`bid_ros.core.settings.settings`; None: the device has no settings.
        topics: from task and settings to what the device listens to: type name by topic.
        rate_hz: chunks a second.
        prepared: whether the arm first goes to the start of an episode; otherwise the device begins where the arm is.
        help: what a person must know to drive, in a few lines.
        fits: raises BidError if settings do not fit a task, before anything starts.
        complete: from the settings that a person gave to those that the node gets, and a line for the person's
            terminal. It runs in that terminal, not in the node.
    """

    name: str
    build: Callable[..., TeleopDevice]
    bodies: Callable[[Task], tuple[str, ...]] = lambda task: ()
    styles: Callable[[Task], tuple[str, ...]] = lambda task: ()
    settings: type[Any] | None = None
    topics: Callable[[Task, Any], Mapping[str, str]] = lambda task, settings: {}
    fits: Callable[[Task, Any], None] = lambda task, settings: None
    rate_hz: float = 20.0
    prepared: bool = True
    help: str = ""
    complete: Callable[[Mapping[str, Any]], tuple[Mapping[str, Any], str]] = lambda given: (given, "")

    def read(self, text: str) -> Any:
        """Return the settings in a YAML text, such as ``terminal: /dev/pts/3``; None if the device has none.

        Raises:
            BidError: a setting is unknown or not valid.
        """
        content = self._parsed(text)
        if self.settings is None:
            if content:
                raise BidError(f"device '{self.name}' has no settings; leave out: {text}")
            return None
        return parse_settings(self.settings, content or {}, f"settings of device '{self.name}'")

    def demand_fit(self, task: Task, text: str) -> None:
        """Raise BidError unless the settings in a YAML text are valid, and fit a task."""
        options = self.read(text)
        pattern, valid = SOURCE["topic"]
        for topic in self.topics(task, options):
            if not re.fullmatch(pattern, topic, re.ASCII):
                raise BidError(f"device '{self.name}' listens to the topic '{topic}'; valid is {valid}")
        self.fits(task, options)

    def _parsed(self, text: str) -> Any:
        try:
            return load_yaml(text) if text else None
        except yaml.YAMLError as error:
            why = " ".join(str(error).split())
            raise BidError(
                f"settings of device '{self.name}' are not valid YAML: {why}; valid is 'name: value'"
            ) from error

    def completed(self, text: str) -> tuple[str, str]:
        """Return the settings, in YAML, of a device that a person drives from this terminal, and a line to show there.

        Raises:
            BidError: as :meth:`read`, or the device needs what this terminal lacks.
        """
        content = self._parsed(text) or {}
        if not isinstance(content, dict):
            self.read(text)  # which says what is valid
        given, line = self.complete(content)
        completed = yaml.safe_dump(dict(given), default_flow_style=True) if given else ""
        self.read(completed)
        return completed, line

    def open(self, task: Task, settings: Any) -> TeleopDevice:
        """Return the device, open. Raises BidError if it cannot be opened."""
        return self.build(task) if self.settings is None else self.build(task, settings)

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


DEVICES: Final[Registry[DeviceDescriptor]] = Registry(
    "teleoperation device", "bid_ros.teleop", lambda: collect(__package__, "DEVICE")
)
