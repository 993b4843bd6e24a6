"""The servo loop of a UR: at the robot's rate it sends a set-point, reads the robot, and answers the arm.

It runs in a process of its own, see :mod:`bid_ros.robots.ur.process`.
"""

import contextlib
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final

from bid_ros.core.fault_words import NO_SETPOINT
from bid_ros.core.margins import Margins
from bid_ros.robots.loop import DriverLoop
from bid_ros.robots.protocol import DriverMemory, DriverRequest, DriverState, Mode, MotionOutcome
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.robot import LIBRARY_ERRORS, UrRobot
from bid_ros.robots.ur.status import JointMotion, slowed
from bid_ros.robots.ur.streams import JointStream, Periods, Stream, ToolStream
from bid_ros.robots.ur.watch import UrWatch

# The servo lags, so it goes on until the arm stands, rad/s, or for this long after its last set-point came to rest.
STILL: Final = 0.01
SETTLE_S: Final = 0.4
KEEP_ALIVE_S: Final = 0.02
# Refusals in a row before they count. One may be due to a change of the robot's state.
REFUSALS: Final = 5
LONGEST_TEXT: Final = 80
LAST_WORD_S: Final = 0.02


class UrLoop(DriverLoop):
    """Drives a UR, see :class:`DriverLoop`.

    Args:
        config: configuration of the arm.
        robot: open robot.
        memory: takes set-points in and states out.
        requests: requests from the arm. When it closes, this process ends.
    """

    def __init__(self, config: UrConfig, robot: UrRobot, memory: DriverMemory, requests: Connection) -> None:
        super().__init__(config.address, robot.rate_hz, memory, requests, config.stuck_s)
        self._config = config
        self._robot = robot
        self._periods = Periods(robot.rate_hz)
        self._motion: JointMotion | None = None
        self._refused = 0
        self._rest_ns = self._kept_ns = 0
        self._watch = UrWatch(config, robot)
        self._streams = ToolStream(config, robot, self._watch), JointStream(config, robot, self._watch)
        self._stream: Stream = self._streams[0]
        self._publish()

    def tick(self, now_ns: int) -> None:
        """Do the work of one period, see :class:`DriverLoop`."""
        try:
            super().tick(now_ns)
        except LIBRARY_ERRORS as error:
            # It is in a state that nobody knows.
            text = " ".join(str(error).split())[:LONGEST_TEXT].rstrip(" .!")
            self._lose(f"{self._where} is lost to ur_rtde ({text}): check the network, look at the pendant, then reset")

    def _leave(self) -> None:
        self._robot.end_program()

    def _drive(self, now_ns: int) -> None:
        if self._mode in (Mode.FOLLOWING, Mode.STOPPING):
            self._follow(now_ns)
        elif now_ns - self._kept_ns > KEEP_ALIVE_S * 1e9:
            self._kept_ns = now_ns
            self._robot.keep_alive()
        if self._motion is not None:
            self._watch_motion(self._motion, now_ns)

    def _follow(self, now_ns: int) -> None:
        setpoint = self._newest()
        if setpoint is not None:
            self._stream.accept(setpoint)
        taken = self._stream.send(now_ns)
        if self._stream.follower.waited:
            self._watch.margins.over("set-point", self._stream.follower.waited, 1.0)
        self._periods.sent(time.monotonic_ns())
        self._refused = 0 if taken else self._refused + 1
        if self._refused >= REFUSALS:
            self._disable(f"{self._where} refuses set-points: look at the pendant, then reset")
        elif not self._fault and (reason := self._slowed()):
            self._fault = reason  # it would catch up all at once when the slider is back
            self._stop()
        elif self._stream.follower.silent and not self._fault:
            self._fault = (
                f"{NO_SETPOINT} {self._config.silence_timeout_s:g} s while the {self._where} moved: it was stopped; "
                "find what held them up, then reset"
            )
            self._stop()
        if self._mode is Mode.STOPPING:
            self._settle(now_ns)

    def _settle(self, now_ns: int) -> None:
        """Leave the servo when the arm has followed the stream to rest."""
        if not self._stream.follower.at_rest:
            self._rest_ns = now_ns
        still = max(map(abs, self._watch.reading.joint_speeds)) < STILL
        waited = now_ns - self._rest_ns
        if waited > SETTLE_S * 1e9 or (still and waited > 2 * self._config.lookahead_time_s * 1e9):
            self._mode = Mode.IDLE
            self._watch.end()
            self._periods.pause()
            if not self._robot.end_servo():
                self._disable(f"{self._where} refused to end the servo: look at the pendant, then reset")

    def _watch_motion(self, motion: JointMotion, now_ns: int) -> None:
        outcome = motion.outcome(self._watch.reading, now_ns)
        if outcome is not MotionOutcome.NONE:
            self._outcome, self._motion, self._mode = outcome, None, Mode.IDLE
            if outcome is MotionOutcome.MISSED:
                self._robot.end_move()  # what holds it may let go, and its states may not be true

    def _slowed(self) -> str:
        return slowed(self._config.address, self._watch.reading)

    def _look(self, now_ns: int) -> None:
        holds = self._mode is Mode.FOLLOWING and not self._stream.follower.moving
        finding = self._watch.look(at_rest=holds or self._mode is Mode.IDLE)
        if finding is not None and finding.lost:
            self._tell(finding.reason)
            if finding.silent and self._usable and self._mode is not Mode.IDLE:
                self._ask_to_stop()
            self._lose(finding.reason)
        if self._usable:
            reason = self._watch.why_stopped() if finding is None else finding.reason
            if finding is not None and finding.doubtful and self._mode is not Mode.IDLE:
                self._doubt(reason)
            elif reason:
                self._disable(reason)

    def _doubt(self, reason: str) -> None:
        """Latch that the robot's states contradict themselves. Stop without them: it still follows set-points."""
        self._fault = self._fault or reason
        if self._mode is Mode.MOVING:
            self._ask_to_stop()
            self._disable(reason)
        else:
            self._stop()

    def _forget(self) -> None:
        self._motion = None
        self._periods.pause()
        self._watch.end()
        self._robot.forget()

    def _ask_to_stop(self) -> None:
        """Ask a silent robot to stop, because it may still hear us. Do not wait for an answer."""
        call = self._robot.end_servo if self._motion is None else self._robot.end_move

        def ask() -> None:
            with contextlib.suppress(*LIBRARY_ERRORS):
                call()

        threading.Thread(target=ask, daemon=True).start()
        time.sleep(LAST_WORD_S)

    def _stop(self) -> None:
        if self._mode is Mode.FOLLOWING:
            self._stream.follower.brake()
            self._mode = Mode.STOPPING
        elif self._motion is not None and not self._motion.stopped:
            self._motion.stopped = True
            self._robot.end_move()

    def _answer(self, now_ns: int, request: DriverRequest, *arguments: Any) -> object:
        if request is DriverRequest.STATISTICS:
            return replace(
                self._periods.statistics(),
                skipped=self._skipped,
                longest_echo_ms=1000.0 * self._robot.echo.longest_s,
                margins=dict(self._watch.margins),
            )
        return super()._answer(now_ns, request, *arguments)

    def _begin(self, now_ns: int, request: DriverRequest, *arguments: Any) -> object:
        if reason := self._slowed():
            return reason
        if request is DriverRequest.START:
            return self._begin_servo(now_ns, *arguments)
        return self._begin_motion(*arguments)

    def _begin_servo(self, now_ns: int, joints: bool = False) -> str:
        self._stream = self._streams[joints]
        if not self._stream.stands(self._watch.reading):
            return (
                f"{self._where} says that it stands elsewhere than it was sent to: check what holds it or damages its "
                "data on the network, then reset"
            )
        self._skip_old()
        self._stream.begin(self._watch.reading, now_ns)
        self._refused, self._mode = 0, Mode.FOLLOWING
        return ""

    def _begin_motion(self, joints: tuple[float, ...], speed: float, acceleration: float) -> str:
        if not self._robot.allows(joints):
            return f"{self._where}: the goal lies outside the robot's own safety limits; valid is inside them"
        if not self._robot.move(joints, speed, acceleration):
            return f"{self._where} refused the motion: look at the pendant, then reset"
        self._motion, self._outcome, self._mode = (
            JointMotion(joints, time.monotonic_ns()),
            MotionOutcome.NONE,
            Mode.MOVING,
        )
        return ""

    def _margins(self) -> Margins:
        return self._watch.margins

    def _state(self) -> DriverState:
        reading = self._watch.reading
        return DriverState(
            self._watch.stamp_ns,
            self._watch.steady_ns,
            self._mode,
            self._outcome,
            reading.joints,
            reading.joint_speeds,
            reading.pose.position,
            reading.pose.quaternion,
            self._fault,
            self._beat,
        )
