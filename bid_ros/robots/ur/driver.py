"""UR arms over ur_rtde: a process of its own turns set-points into a smooth stream at the controller's rate."""

import importlib.util
import socket
from typing import Final

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.robots.base import ArmInfo, Array, Dynamics
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.link import DriverLink
from bid_ros.robots.process_arm import ProcessArm
from bid_ros.robots.protocol import DriverState, TimedJoints, TimedSetpoint
from bid_ros.robots.robotiq.driver import RobotiqGripper
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.robots.ur.config import JOINT_NAMES, JOINTS, UrConfig
from bid_ros.robots.ur.reach import Reach
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT

if importlib.util.find_spec("rtde_control") is None:
    # Only the process imports it, but a missing library must be found before the robot starts.
    raise ImportError("No module named 'rtde_control'")

FULL_SPEED: Final = 3.14  # rad/s, what the joints of a UR5 reach and ur_rtde lets pass
FULL_ACCELERATION: Final = 10.0  # rad/s^2; UR names no limit of its own
PORTS: Final = ((29999, "Dashboard"), (RTDE_PORT, "RTDE"))
# A process that waits for an answer of the controller says so itself, this long, s, before it would be ended.
GRACE_S: Final = 0.05


class UrLink(DriverLink):
    """A :class:`DriverLink` to ``bid_ros.robots.ur.process``.

    Args:
        config: configuration of the arm.
        release: on a person's request: release a protective stop and end any program on the robot.

    Raises:
        ArmError: nothing answers in time, or the robot cannot be used.
    """

    def __init__(self, config: UrConfig, release: bool = False) -> None:
        _demand_answer(config)
        beat_s = config.stuck_s + GRACE_S
        super().__init__("bid_ros.robots.ur.process", config, release, beat_s, "ur_rtde")


def _demand_answer(config: UrConfig) -> None:
    """Raise RobotAwayError if nothing listens. ur_rtde in the process would need seconds for that."""
    for port, name in PORTS:
        try:
            socket.create_connection((config.address, port), config.connect_timeout_s).close()
        except OSError as error:
            reason = error.strerror or str(error)
            raise RobotAwayError(
                f"robot at {config.address}: {reason} on port {port} ({name}): check the address, power and cable"
            ) from error


class UrArm(ProcessArm):
    """A UR5 (CB3) or UR5e (e-Series), or its twin, as a :class:`bid_ros.robots.process_arm.ProcessArm`.

    ``bid_ros.robots.ur.process`` has the connection and runs the servo loop. Between set-points the last one is
    extrapolated with its velocity. A recovery releases a protective stop and ends a running program.

    Args:
        config: configuration of the arm.
    """

    def __init__(self, config: UrConfig) -> None:
        super().__init__(config.address, JOINTS)
        self._config = config
        self._reach = Reach(config)
        self._device: RobotiqGripper | None = None

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        prefix, gripper = self._config.joint_prefix, self._config.gripper is not None
        joints = tuple(f"{prefix}{name}_joint" for name in JOINT_NAMES)
        fingers = (f"{prefix}left_finger_joint", f"{prefix}right_finger_joint") if gripper else ()
        return ArmInfo("ur", self._address, joints, fingers, MAX_OPENING if gripper else 0.0)

    def _open_link(self, release: bool) -> UrLink:
        return UrLink(self._config, release)

    def _refusal(self, setpoint: TimedSetpoint | TimedJoints, state: DriverState) -> str:
        if isinstance(setpoint, TimedJoints):
            return self._reach.joint_refusal(setpoint)
        return self._reach.refusal(setpoint, state.joints)

    def _motion(self, target: Array, dynamics: Dynamics | None) -> tuple[object, ...]:
        self._demand(self._reach.outside(target.tolist()))
        share = dynamics or self._config.dynamics
        return tuple(target.tolist()), share.velocity * FULL_SPEED, share.acceleration * FULL_ACCELERATION

    def _open_gripper(self) -> GripperThread | None:
        if self._config.gripper is None:
            return None
        self._device = device = RobotiqGripper(self._config.gripper, self._address)
        hand = GripperThread(device, self._config.gripper_thresholds, (ArmError,), lambda error: self._fail(str(error)))
        try:
            hand.start()
        except ArmError:
            device.close()
            raise
        return hand

    def _close_gripper(self, hand: GripperThread) -> None:
        super()._close_gripper(hand)
        if self._device is not None:
            self._device.close()
