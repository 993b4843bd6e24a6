"""Teleoperation by a leader arm: a person moves an arm by hand, and the follower's tool goes the same way (GELLO)."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.core.errors import BidError
from bid_ros.core.rotation import Array
from bid_ros.core.settings import Angle, Positive, ToolPlace, settings
from bid_ros.core.task import Task
from bid_ros.robots.registry import ROBOTS
from bid_ros.teleop.base import Command, DeviceDescriptor, Offset
from bid_ros.teleop.human import HumanDevice, TopicController

HELP: Final = """\
  pedal             dead man's switch: a button on the topic `hold_topic`. Hold it, and the tool goes as the leader's
                    tool goes (axes roll and pitch are locked unless `locked` says otherwise). Let go, move the leader
                    back, hold again: the tool goes on from where it is
  trigger           gripper, as far as you squeeze it, if `gripper` names its joint"""

MOVED: Final = 0.05  # share of the trigger's way


@settings
class LeaderSettings:
    """Settings of a leader arm.

    Attributes:
        topic: of ``sensor_msgs/msg/JointState``.
        joints: names of its joints, in the order of the follower's, base to wrist; empty: the first
            ones of its first message, if their names end in numbers that count up.
        signs: 1 or -1 for each joint; empty: all 1.
        offsets: rad, added to each joint after its sign; empty: all 0.
        scale: of each joint's angle; empty: all 1.
        tool_offset: of the tool in the follower's flange (Franka: in its end effector), m, as in its ``robot.yaml``.
        gripper: name of the trigger's joint; empty: no trigger.
        closed, opened: of that joint, rad or m.
        hold_topic: of ``sensor_msgs/msg/Joy``, with the dead man's switch: a foot pedal, for example.
        hold_button: its place among the buttons.
        silence_s: s without joints, or without the switch, after which the switch counts as open.
    """

    topic: str = "leader/joint_states"
    joints: tuple[str, ...] = ()
    signs: tuple[float, ...] = ()
    offsets: tuple[Angle, ...] = ()
    scale: tuple[float, ...] = ()
    tool_offset: ToolPlace = (0.0, 0.0, 0.0)
    gripper: str = ""
    closed: float = 0.0
    opened: float = 1.0
    hold_topic: str = "leader/hold"
    hold_button: Annotated[int, Field(ge=0, le=31)] = 0
    silence_s: Positive = 0.25

    def __post_init__(self) -> None:
        if any(abs(sign) != 1 for sign in self.signs):
            raise BidError(
                f"signs are {list(self.signs)}; valid is 1 or -1 for each joint, and scale for another factor"
            )
        if self.closed == self.opened:
            raise BidError(f"closed and opened are both {self.closed}; valid are two positions of the trigger")
        if self.topic == self.hold_topic:
            raise BidError(f"topic and hold_topic are both '{self.topic}'; valid are two topics")


class Leader(TopicController):
    """A leader arm.

    Args:
        options: where it is, and how its joints are the follower's.
        joints: number of the follower's.
        forward: from the follower's joint angles to position ``(3,)`` m and rotation ``(3, 3)``, base frame.

    Raises:
        BidError: a setting has another number of values than the follower has joints.
    """

    def __init__(self, options: LeaderSettings, joints: int, forward: Callable[[Array], tuple[Array, Array]]) -> None:
        super().__init__(options.silence_s)
        self._options, self._count, self._forward = options, joints, forward
        _check_counts(options, joints)
        factor = np.array(options.signs or (1.0,) * joints) * np.array(options.scale or (1.0,) * joints)
        self._factor, self._offsets = factor, np.array(options.offsets or (0.0,) * joints)
        self._anchor: tuple[Array, Array] | None = None
        self._names, self._angles = list(options.joints), np.array([])  # of the leader's arm; newest angles, rad
        self._closing = 0
        self._trigger: float | None = None  # where it was when the switch was closed, as long as it is there

    def begin(self, now_ns: int) -> None:
        """Forget the messages before."""
        super().begin(now_ns)
        self._anchor = None

    def poll(self, now_ns: int) -> Command:
        """Return what the leader asks for. Raises BidError if its messages lack a joint."""
        joints, switch = self.newest(self._options.topic, now_ns), self.newest(self._options.hold_topic, now_ns)
        values = None if joints is None else self._values(joints)
        if values is not None:
            values[: self._count] = self._unwrapped(values[: self._count])
        held = switch is not None and any(switch.buttons[self._options.hold_button :][:1])
        if values is None or not held:
            self._anchor = None
            return Command(heard=values is not None and switch is not None)
        position, rotation = self._forward(self._offsets + self._factor * values[: self._count])
        position = position + rotation @ np.array(self._options.tool_offset)
        if self._anchor is None:
            self._anchor, self._closing = (position, rotation), self._closing + 1
            self._trigger = self._share(values[self._count :])
        first, turned = self._anchor
        offset = Offset(position - first, rotation @ turned.T, self._closing)
        return Command(True, offset=offset, gripper=self._pulled(self._share(values[self._count :])))

    def _values(self, message: Any) -> Array | None:
        """Return the leader's angles, then that of the trigger if there is one; None if one is no number."""
        names = list(message.name)
        wanted = [*(self._names or names[: self._count]), *filter(None, [self._options.gripper])]
        missing = [name for name in wanted if name not in names]
        if missing or len(wanted) < self._count or len(message.position) != len(names):
            lacks = f"lacks {', '.join(missing)}" if missing else f"has {len(message.position)} positions"
            raise BidError(
                f"a message on {self._options.topic} {lacks}; valid is a position for each joint: "
                f"{', '.join(wanted) or self._count}"
            )
        if not self._names and not _count_up(wanted[: self._count]):
            raise BidError(
                f"a message on {self._options.topic} names {', '.join(wanted[: self._count])}, and many drivers sort "
                "names by alphabet; valid is the setting joints: their names from base to wrist"
            )
        self._names = wanted[: self._count]  # the next message may have another order
        values = np.array([message.position[names.index(name)] for name in wanted], dtype=np.float64)
        return values if np.isfinite(values).all() else None

    def _unwrapped(self, angles: Array) -> Array:
        """Return angles without whole turns since those before: an encoder goes from 3.14 to -3.14 in one step."""
        if self._angles.size:
            angles = angles - 2 * np.pi * np.round((angles - self._angles) / (2 * np.pi))
        self._angles = angles
        return angles

    def _pulled(self, share: float | None) -> float | None:
        """Return the opening that the trigger asks for; None until it has moved, so that taking over drops nothing."""
        if share is not None and self._trigger is not None and abs(share - self._trigger) > MOVED:
            self._trigger = None
        return share if self._trigger is None else None

    def _share(self, trigger: Array) -> float | None:
        closed, opened = self._options.closed, self._options.opened
        return float(np.clip((trigger[0] - closed) / (opened - closed), 0.0, 1.0)) if trigger.size else None


def _count_up(names: Sequence[str]) -> bool:
    """Whether names end in numbers that count up, as ``joint1``, ``joint2``: then the first is that at the base."""
    found = [re.search(r"\d+$", name) for name in names]
    numbers = [int(end.group()) for end in found if end]
    return len(numbers) == len(names) and all(after == before + 1 for before, after in pairwise(numbers))


def _check_counts(options: LeaderSettings, joints: int) -> None:
    for name in ("joints", "signs", "offsets", "scale"):
        given = len(getattr(options, name))
        if given not in (0, joints):
            raise BidError(f"leader's {name} are {given} values; valid are {joints}, one a joint, or none")


def _fits(task: Task, options: LeaderSettings) -> None:
    robot = ROBOTS.find(task.robot)
    if robot.forward is None or not robot.joints:
        raise BidError(f"robot '{robot.name}' has no forward kinematics, so no leader arm can lead it")
    _check_counts(options, robot.joints)


def _build(task: Task, options: LeaderSettings) -> HumanDevice:
    _fits(task, options)
    robot = ROBOTS.find(task.robot)
    forward = robot.forward
    assert forward is not None, "it fits"
    return HumanDevice(task, lambda: Leader(options, robot.joints, forward))


DEVICE = DeviceDescriptor(
    "leader",
    _build,
    settings=LeaderSettings,
    topics=lambda task, options: {
        options.topic: "sensor_msgs/msg/JointState",
        options.hold_topic: "sensor_msgs/msg/Joy",
    },
    fits=_fits,
    rate_hz=40.0,
    help=HELP,
)
