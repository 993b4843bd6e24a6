"""The loop of a Franka: it hands set-points to franky's control loop, judges robot and set-points, and answers the arm.

It runs in a process of its own, see :mod:`bid_ros.robots.franka.process`. franky's thread controls the robot at 1 kHz
beside it, with the last set-point that it was given.
"""

import math
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

from bid_ros.control.spatial import Pose, norm
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ArmError
from bid_ros.core.fault_words import NO_SETPOINT
from bid_ros.core.margins import Margins
from bid_ros.robots.base import Dynamics
from bid_ros.robots.driver import ARRIVED_RAD, SETTLE_S
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.reading import FrankaReading
from bid_ros.robots.franka.watch import FrankaWatch
from bid_ros.robots.loop import DriverLoop
from bid_ros.robots.protocol import (
    REST_SPEED,
    REST_TURN_RATE,
    DriverMemory,
    DriverRequest,
    DriverState,
    Mode,
    MotionOutcome,
    PeriodStatistics,
    TimedJoints,
    TimedSetpoint,
)
from bid_ros.robots.unheard import Unheard

RATE_HZ: Final = 500
TWIN_RATE_HZ: Final = 250  # a twin, its physics and this loop share the cores of one computer
# An arm of which no joint is faster than this, rad/s, does not move.
STILL: Final = 0.05


class Drivable(Protocol):
    """What the loop needs of :class:`bid_ros.robots.franka.robot.FrankaRobot`, whose methods return at once."""

    @property
    def tool(self) -> Pose:
        """Pose of the tool in the robot's flange."""

    def newest(self) -> FrankaReading:
        """Return the newest state."""

    def trouble(self) -> str:
        """Return one sentence if the robot does not follow or answer any more."""

    def follow(self, joints: bool) -> Future[str]:
        """Begin to follow set-points."""

    def send(self, setpoint: TimedSetpoint | TimedJoints) -> None:
        """Hand a set-point over. Raises ArmError."""

    def stop(self) -> Future[str]:
        """Damp the arm to rest and leave control."""

    def move(self, joints: tuple[float, ...], dynamics: Dynamics) -> Future[str]:
        """Begin a joint motion."""

    def end_move(self) -> None:
        """Begin to stop a joint motion."""

    def recover(self) -> Future[str]:
        """Clear the robot's errors."""


class FrankaLoop(DriverLoop):
    """Drives a Franka, see :class:`DriverLoop`.

    Args:
        config: configuration of the arm.
        robot: open robot.
        memory: takes set-points in and states out.
        requests: requests from the arm. When it closes, this process ends.
    """

    def __init__(self, config: FrankaConfig, robot: Drivable, memory: DriverMemory, requests: Connection) -> None:
        super().__init__(config.address, TWIN_RATE_HZ if config.twin else RATE_HZ, memory, requests)
        self._config, self._robot = config, robot
        self._watch = FrankaWatch(config, robot.tool, robot.newest())
        self._of_joints = False
        self._silence = Unheard(config.silence_timeout_s)
        self._target: TimedSetpoint | TimedJoints | None = None
        # What waits for the robot, and what the arm is told when it has ended; None: nothing.
        self._work: Future[str] | None = None
        self._asked: DriverRequest | None = None
        self._goal: tuple[float, ...] = ()
        self._ended_ns: int | None = None  # when the joint motion has ended
        self._halted = False
        self._publish()

    def tick(self, now_ns: int) -> None:
        """Do the work of one period, see :class:`DriverLoop`."""
        if self._work is not None and self._work.done():
            result, self._work = self._work.result(), None
            self._take(result, now_ns)
        super().tick(now_ns)

    def _drive(self, now_ns: int) -> None:
        if self._mode is Mode.FOLLOWING:
            self._follow(now_ns)
        elif self._ended_ns is not None:
            self._settle(now_ns - self._ended_ns)
        elif self._mode is Mode.MOVING:
            self._newest()
            self._listen(now_ns)

    def _take(self, result: str, now_ns: int) -> None:
        """Take the result of what was waited for."""
        asked, self._asked = self._asked, None
        if self._mode is Mode.MOVING:
            self._ended_ns = now_ns
            if result:
                self._disable(result)
        elif self._mode is Mode.STOPPING:
            self._mode = Mode.IDLE
            if result:
                self._disable(result)
        elif asked is DriverRequest.START and not result:
            self._skip_old()
            self._halted = False
            self._target, self._mode = None, Mode.FOLLOWING
            self._silence = Unheard(self._config.silence_timeout_s)
            self._watch.begin(self._of_joints, now_ns)
        elif asked is DriverRequest.CLEAR and not result:
            self._fault, self._usable = "", True
        if asked in (DriverRequest.START, DriverRequest.CLEAR):
            self._publish()
            self._reply(result)

    def _reply(self, result: str) -> None:
        try:
            self._requests.send(result)
        except OSError:
            self._end(self._beat_ns)

    def _follow(self, now_ns: int) -> None:
        """Hand over a new set-point. Stop when none comes while the arm moves."""
        setpoint = self._newest()
        if setpoint is not None:
            self._target = setpoint
            try:
                self._robot.send(setpoint)
            except ArmError as error:
                self._fault = self._fault or str(error)
                self._stop()
                return
        if self._target is not None:
            self._watch.sent(self._target, now_ns)
        self._listen(now_ns)

    def _listen(self, now_ns: int) -> None:
        """Stop a moving arm if no set-point comes. While joints move, the arm sends their goal again and again."""
        silent_s = self._silence.look(self._taken, now_ns)
        if self._mode is Mode.STOPPING or self._halted or not self._moves():
            return
        if self._watch.margins.over("set-point", silent_s, self._silence.limit_s):
            self._fault = self._fault or (
                f"{NO_SETPOINT} {self._config.silence_timeout_s:g} s while the {self._where} moved: it was stopped; "
                "find what held them up, then reset"
            )
            self._stop()

    def _moves(self) -> bool:
        """Whether the arm moves, or was told to."""
        if self._mode is Mode.MOVING:
            return True
        target = self._target
        if isinstance(target, TimedSetpoint):
            told = norm(target.linear_velocity) > REST_SPEED or norm(target.angular_velocity) > REST_TURN_RATE
        else:
            told = target is not None and max(map(abs, target.velocities)) > REST_TURN_RATE
        return told or max(map(abs, self._watch.reading.joint_speeds)) > STILL

    def _settle(self, passed_ns: int) -> None:
        """Find what became of a joint motion, whose end the joints reach a little later."""
        pairs = zip(self._watch.reading.joints, self._goal, strict=True)
        if self._halted:
            self._outcome = MotionOutcome.STOPPED
        elif max(abs(a - b) for a, b in pairs) <= ARRIVED_RAD:
            self._outcome = MotionOutcome.ARRIVED
        elif passed_ns > SETTLE_S * NANOSECONDS:
            self._outcome = MotionOutcome.MISSED
        else:
            return
        self._mode, self._ended_ns = Mode.IDLE, None

    def _look(self, now_ns: int) -> None:
        lost = self._watch.look(self._robot.newest(), now_ns, self._mode is Mode.IDLE)
        if lost:
            self._lose(lost)
        elif self._usable and self._robot.trouble():
            self._disable(self._robot.trouble())

    def _stop(self) -> None:
        if self._mode is Mode.FOLLOWING:
            self._mode = Mode.STOPPING
            self._watch.end()
            self._work = self._robot.stop()
        elif self._mode is Mode.MOVING and not self._halted:
            self._halted = True
            self._robot.end_move()

    def _forget(self) -> None:
        self._ended_ns = None
        self._watch.end()
        self._robot.stop()

    def _leave(self) -> None:
        pass  # out of control already; the end of the process closes the connection

    def _answer(self, now_ns: int, request: DriverRequest, *arguments: Any) -> object:
        if request is DriverRequest.STATISTICS:
            nothing = math.nan
            return PeriodStatistics(
                0, self._skipped, self._period_ns / 1e6, nothing, nothing, nothing, margins=dict(self._watch.margins)
            )
        if request is not DriverRequest.CLOSE and self._work is not None and request is not DriverRequest.STOP:
            return f"{self._where} is busy; stop it first"
        return super()._answer(now_ns, request, *arguments)

    def _begin(self, now_ns: int, request: DriverRequest, *arguments: Any) -> object:
        self._asked = request
        if request is DriverRequest.START:
            (self._of_joints,) = arguments
            self._work = self._robot.follow(self._of_joints)
            return None
        self._goal, dynamics = arguments
        self._halted, self._outcome, self._mode = False, MotionOutcome.NONE, Mode.MOVING
        self._silence = Unheard(self._config.silence_timeout_s)
        self._watch.move()
        self._work = self._robot.move(self._goal, dynamics)
        return ""

    def _clear(self) -> object:
        if self._mode is not Mode.IDLE:
            return f"{self._where} is busy; stop it first"
        self._asked, self._work = DriverRequest.CLEAR, self._robot.recover()
        return None

    def _margins(self) -> Margins:
        return self._watch.margins

    def _state(self) -> DriverState:
        reading = self._watch.reading
        return DriverState(
            reading.stamp_ns,
            reading.steady_ns,
            self._mode,
            self._outcome,
            reading.joints,
            reading.joint_speeds,
            reading.pose.position,
            reading.pose.quaternion,
            self._fault,
            self._beat,
        )
