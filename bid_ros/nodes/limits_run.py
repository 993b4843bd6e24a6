"""The way to limits of a task: a person brings the arm to points, and says at each that it is one."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from rclpy.duration import Duration
from std_msgs.msg import String

from bid_ros.calibration.limits import PARTS, START, TABLE, WORKSPACE, MeasuredLimits, limits_of, measured, with_limits
from bid_ros.core.errors import BidError, CalibrationError, TaskError
from bid_ros.core.rotation import Array
from bid_ros.core.topics import MEASURED_LIMITS, MEASURES
from bid_ros.nodes.arm_watch import ArmWatch
from bid_ros.nodes.client import visiting
from bid_ros.nodes.topics import publisher
from bid_ros.system.folder import System

WHERE: Final = {
    TABLE: "table: touch it with the empty gripper at 3 or more points, far apart in two directions",
    WORKSPACE: "workspace: bring the tool to its corners; two that are opposite are enough",
    START: "start box: bring the tool to the corners of where an episode may start; two that are opposite are enough",
}
KEYS: Final = "[enter] takes a point, u takes the last one back, d = done, q ends:"
ACKED_S: Final = 2.0
WALL_M: Final = 0.015  # from a wall of the present workspace: a device drives the arm no further
LIMITED: Final = "it is at the edge of the present workspace, beyond which no device drives it: guide it by hand there"


@dataclass(frozen=True)
class LimitsSession:
    """What is measured, and with whom.

    Attributes:
        system: whose limits.
        parts: of :data:`bid_ros.calibration.limits.PARTS`.
        margin: m off every wall.
        twin: the system runs in its twin.
        namespace: of the system.
        say: tells a person how it goes.
        ask: asks a person, and returns the answer.
    """

    system: System
    parts: Sequence[str]
    margin: float
    twin: bool
    namespace: str
    say: Callable[[str], None]
    ask: Callable[[str], str]


def guided_limits(session: LimitsSession, agreed: Callable[[MeasuredLimits], bool]) -> MeasuredLimits:
    """Return the limits that a person shows to a system that runs. This drives nothing.

    Args:
        session: of a system that runs.
        agreed: writes the limits if the person agrees; otherwise nobody is shown them any more.

    Raises:
        CalibrationError: the arm is silent, or the person ends it, or does not agree.
        BidError: as ``agreed``; the task's table is no plane.
    """
    with visiting("bid_calibrate", session.namespace, last_word=True) as node:
        watch, shown, written = ArmWatch(node), publisher(node, MEASURED_LIMITS, MEASURES), False
        try:
            limits = _Guide(session, watch, lambda text: shown.publish(String(data=text))).measure()
            written = agreed(limits)
            if not written:
                raise CalibrationError("not confirmed, so nothing is written")
            return limits
        finally:
            if not written:
                shown.publish(String(data="{}"))
                shown.wait_for_all_acked(Duration(seconds=ACKED_S))
            watch.close()


class _Guide:
    """Leads a person through the parts."""

    def __init__(self, session: LimitsSession, watch: ArmWatch, show: Callable[[str], None]) -> None:
        self._session, self._watch, self._show = session, watch, show
        self._task = session.system.task
        self._arm = session.system.judged_arm(session.twin)
        self._known = limits_of(self._task)
        self._new: dict[str, Any] = {}

    def measure(self) -> MeasuredLimits:
        """Return the task's limits with those that were measured."""
        if self._arm is None:
            self._session.say("nobody knows the arm's kinematics, so it is not checked that it reaches the corners")
        self._watch.listen()  # is there an arm at all?
        for part in (part for part in PARTS if part in self._session.parts):
            self._session.say(WHERE[part])
            self._known = self._measured(part)
            self._new[part] = asdict(getattr(self._known, part))
        self._publish([])
        return self._known

    def _measured(self, part: str) -> MeasuredLimits:
        """Return the limits with a part, whose points a person adds and takes back until they make one."""
        tools: list[Array] = []
        while True:
            answer = self._session.ask(f"{part}, {len(tools)} points. {KEYS}").lower()
            if answer == "q":
                raise CalibrationError("ended before all was measured, so nothing is written")
            if answer == "d":
                try:
                    return self._checked(part, tools)
                except BidError as error:
                    self._session.say(f"not taken over: {error}")
            elif answer == "u":
                self._session.say("took the last point back" if tools else "there is no point to take back")
                del tools[-1:]
            elif answer:
                self._session.say(f"'{answer}' is unknown; valid are [enter], u, d and q")
            else:
                self._add(tools)
            self._publish(tools)

    def _add(self, tools: list[Array]) -> None:
        self._watch.listen()
        tool = self._watch.tool
        if (why := self._watch.unrest()) or tool is None:
            self._session.say(f"not taken: {why or 'nobody knows where the tool is'}")
            return
        tools.append(tool)
        place = tool[:3, 3]
        self._session.say(f"{len(tools):2}: the tool is at [{', '.join(f'{value:.3f}' for value in place)}] m")
        limits = self._task.limits
        if (
            self._watch.source
            and (
                (place < np.array(limits.workspace_min) + WALL_M) | (place > np.array(limits.workspace_max) - WALL_M)
            ).any()
        ):
            self._session.say(LIMITED)

    def _checked(self, part: str, tools: list[Array]) -> MeasuredLimits:
        """Return the limits with a part. Raises BidError if its points make none, or, of the last one, all together."""
        poses = np.stack(tools) if tools else np.empty((0, 4, 4))
        known = measured(part, poses, self._known, self._task, self._session.margin, self._arm)
        if part == [name for name in PARTS if name in self._session.parts][-1]:
            self._check_together(known)
        return known

    def _check_together(self, known: MeasuredLimits) -> None:
        """Raise CalibrationError if the limits contradict each other, or one that is not measured here."""
        try:
            with_limits(self._task, known)
        except TaskError as error:
            others = " and ".join(name for name in PARTS if name not in self._session.parts)
            advice = f"; to measure {others} too: q, then bid calibrate limits {self._session.system.folder}"
            raise CalibrationError(f"{error}{advice if others else ''}") from error

    def _publish(self, tools: Sequence[Array]) -> None:
        points = [tool[:3, 3].round(4).tolist() for tool in tools]
        self._show(json.dumps({**self._new, "points": points}))
