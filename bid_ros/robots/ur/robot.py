"""One open connection to a UR controller, in the process that owns ur_rtde: reads and commands it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rtde_control import RTDEControlInterface
from rtde_receive import RTDEReceiveInterface

from bid_ros.control.spatial import Pose, Quaternion, turn_between
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.echo import UrEcho
from bid_ros.robots.ur.status import UrReading, pose_from_numbers

# Requested from the robot in every cycle. Fewer fields are less to read and to be damaged.
VARIABLES: Final = (
    "timestamp",
    "actual_q",
    "actual_qd",
    "actual_TCP_pose",
    "target_TCP_pose",
    "robot_mode",
    "safety_status_bits",
    "runtime_state",
    "target_q",
    "target_speed_fraction",
)
# The program on the controller is ready for the next command this many cycles after it has answered one. ur_rtde waits
# for that without sleeping, which at a real-time priority takes a core from everybody; so it is waited for here.
READY_CYCLES: Final = 4
# What exceptions of a C++ library become in Python.
LIBRARY_ERRORS: Final = (RuntimeError, ValueError, IndexError, OverflowError, MemoryError)
READ_TRIES: Final = 3
SERVO_STOP: Final = 10.0  # m/s^2; the arm already stands when the servo is ended
IDENTITY: Final[Quaternion] = (0.0, 0.0, 0.0, 1.0)


@dataclass
class UrRobot:
    """A UR with our program running on its controller. One thread only.

    It is not used again after a fault: ur_rtde would connect and restart the program by itself, which only a person may
    request. The process ends, and with it every socket.

    Args:
        config: of the arm.
        rate_hz: set-points a second.
        receive, control: ur_rtde's two connections.
        echo: measures when the robot has received set-points.
    """

    config: UrConfig
    rate_hz: int
    receive: RTDEReceiveInterface
    control: RTDEControlInterface
    echo: UrEcho
    _ready_at: float = field(default=0.0, init=False)

    def read(self) -> UrReading:
        """Return the newest state. Its time does not advance while the robot is silent."""
        # ur_rtde returns each field by itself, so a newer state could be mixed in.
        for _ in range(READ_TRIES):
            reading = self._read()
            if self.receive.getTimestamp() == reading.robot_s:
                break
        return reading

    def _read(self) -> UrReading:
        receive = self.receive
        return UrReading(
            receive.getTimestamp(),
            tuple(receive.getActualQ()),
            tuple(receive.getActualQd()),
            pose_from_numbers(receive.getActualTCPPose()),
            pose_from_numbers(receive.getTargetTCPPose()),
            receive.getRobotMode(),
            receive.getSafetyStatusBits(),
            receive.getRuntimeState(),
            tuple(receive.getTargetQ()),
            receive.getTargetSpeedFraction(),
        )

    def connected(self) -> bool:
        """Whether both connections are open."""
        return bool(self.receive.isConnected() and self.control.isConnected())

    def unheard_s(self) -> float:
        """Return the age in s of the oldest set-point that the robot has not reported back, see :class:`UrEcho`."""
        return self.echo.late_s()

    def servo(self, pose: Pose) -> bool:
        """Send one set-point to the servo. The first one starts it. Return False if the robot refuses."""
        return self._stream(self.control.servoL, [*pose.position, *turn_between(IDENTITY, pose.quaternion)])

    def servo_joints(self, joints: Sequence[float]) -> bool:
        """Send one set-point of the joints, ``(6,)`` rad, to the servo, as :meth:`servo`."""
        return self._stream(self.control.servoJ, list(joints))

    def _stream(self, call: Callable[..., object], numbers: list[float]) -> bool:
        config = self.config
        # `servoj` ignores speed and acceleration. The time is one period: how long the set-point is valid.
        taken = self._sent(call, numbers, 0.0, 0.0, 1.0 / self.rate_hz, config.lookahead_time_s, config.gain)
        if taken:
            self.echo.sent(tuple(numbers))
        return taken

    def forget(self) -> None:
        """Stop waiting for the echo of what was sent: it is irrelevant, or its registers have another use."""
        self.echo.forget()

    def keep_alive(self) -> None:
        """Tell the watchdog on the controller that we are here."""
        self._sent(self.control.kickWatchdog)

    def end_servo(self) -> bool:
        """Leave the servo; decelerate if the arm still moves. Waits for the robot. Return False if it refuses."""
        self.forget()
        return self._answered(self.control.servoStop, SERVO_STOP)

    def move(self, joints: Sequence[float], speed: float, acceleration: float) -> bool:
        """Begin a joint motion to ``(6,)`` rad at rad/s and rad/s^2; False if the robot refuses."""
        return self._answered(self.control.moveJ, list(joints), speed, acceleration, True)

    def end_move(self) -> None:
        """Begin to stop a joint motion."""
        self._answered(self.control.stopJ, self.config.joint_deceleration, True)

    def allows(self, joints: Sequence[float]) -> bool:
        """Whether joint positions ``(6,)`` rad lie within the robot's own safety limits; waits for its answer."""
        return self._answered(self.control.isJointsWithinSafetyLimits, list(joints))

    def set_tool(self, numbers: Sequence[float]) -> bool:
        """Set the tool frame in the flange's, as x y z and a rotation vector ``(6,)``; False if the robot refuses."""
        return self._answered(self.control.setTcp, list(numbers))

    def set_payload(self, mass: float, center: Sequence[float]) -> bool:
        """Set the payload, kg and m ``(3,)``; False if the robot refuses."""
        return self._answered(self.control.setPayload, mass, list(center))

    def begin_watchdog(self) -> bool:
        """Let the controller stop our program when it hears nothing for a while; False if it refuses."""
        return self._answered(self.control.setWatchdog, self.config.watchdog_hz)

    def end_program(self) -> None:
        """End our program on the controller."""
        self._answered(self.control.stopScript)

    def _sent(self, call: Callable[..., object], *arguments: object) -> bool:
        """Make a call that the robot does not answer; return what ur_rtde says of it."""
        wait = self._ready_at - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        return bool(call(*arguments))

    def _answered(self, call: Callable[..., object], *arguments: object) -> bool:
        """Make a call that waits for the robot's answer; return what ur_rtde says of it."""
        done = self._sent(call, *arguments)
        self._ready_at = time.monotonic() + READY_CYCLES / self.rate_hz
        return done
