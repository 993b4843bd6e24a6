"""What all arm drivers share, whatever their protocol: what the arm follows, its gripper, and the error sentences."""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import numpy as np

from bid_ros.control.setpoint import JointSetpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Array
from bid_ros.robots.gripper import GripperThread

ARRIVED_RAD: Final = 0.01  # a joint this near its goal has arrived
SETTLE_S: Final = 1.0
POLL_S: Final = 0.005


class ArmDriver(ABC):
    """Base of a :class:`bid_ros.robots.base.JointArm`.

    Args:
        address: of the robot, for errors.
        joints: number of its joints.
    """

    def __init__(self, address: str, joints: int) -> None:
        self._address, self._joints = address, joints
        self._hand: GripperThread | None = None
        # It orders the blocking calls. A stop need not wait for them.
        self._lifecycle = threading.RLock()

    def start(self) -> None:
        """Follow set-points of the tool from the present pose on.

        Raises:
            ArmError: not connected, a fault is pending, the joints are followed, or the robot refuses.
        """
        self._follow(joints=False)

    def start_joints(self) -> None:
        """Follow set-points of the joints from the present posture on.

        Raises:
            ArmError: not connected, a fault is pending, the tool is followed, or the robot refuses.
        """
        self._follow(joints=True)

    def command_gripper(self, width: float) -> None:
        """Command the gripper to open or close. Returns at once.

        Raises:
            ArmError: not connected, no gripper, or ``width`` is not finite.
        """
        if not math.isfinite(width):
            raise ArmError(f"gripper width is {width}; valid is a finite number of metres")
        hand = self._gripper()
        if hand is None:
            raise self._error("has no connected gripper; check `gripper` and connect first")
        hand.request(width)

    def _gripper(self) -> GripperThread | None:
        """Return the connected gripper."""
        return self._hand

    @abstractmethod
    def _follow(self, joints: bool) -> None:
        """Begin to follow set-points of the joints, or of the tool."""

    def _goal(self, positions: Array) -> Array:
        """Return the goal ``(joints,)`` rad of a joint motion. Raises ArmError if it does not fit the joints."""
        target = np.asarray(positions, dtype=np.float64)
        if target.shape != (self._joints,) or not np.isfinite(target).all():
            raise ArmError(f"joint positions are {target.tolist()}; valid is {self._joints} finite numbers in rad")
        return target

    def _settle(self, missed: Callable[[], float]) -> None:
        """Wait until the joints have followed the end of a motion.

        Args:
            missed: returns how far a joint is from its goal at most, rad.

        Raises:
            ArmError: a joint stays more than ``ARRIVED_RAD`` away for ``SETTLE_S``, or as ``missed``.
        """
        end = time.monotonic() + SETTLE_S
        while (off := missed()) > ARRIVED_RAD:
            if time.monotonic() > end:
                raise self._error(f"ended {off:.2f} rad from the goal: look at what holds it")
            time.sleep(POLL_S)

    def _demand_kind(self, joints: bool, followed: bool) -> None:
        """Raise ArmError if what is to be followed, joints or tool, is not what is followed."""
        if joints is not followed:
            what = "joints" if followed else "tool"
            raise self._error(f"follows set-points of the {what}; stop it first")

    def _demand(self, refusal: str) -> None:
        if refusal:
            raise ArmError(refusal)

    def _demand_health(self, fault: str) -> None:
        self._demand(f"{fault}; recover first" if fault else "")

    def _unconnected(self) -> ArmError:
        return self._error("is not connected; connect first")

    def _not_in_control(self, joints: bool, fault: str) -> ArmError:
        """Return the error of a set-point that nothing follows: the fault, if that is why."""
        first = "start_joints" if joints else "start"
        return ArmError(fault) if fault else self._error(f"is not in control; {first} first")

    def _stopped_early(self) -> ArmError:
        return self._error("did not reach the goal: it was stopped")

    def _error(self, what: str) -> ArmError:
        return ArmError(f"robot at {self._address} {what}")


def check_joint_setpoint(setpoint: JointSetpoint, joints: int) -> None:
    """Raise ArmError if a set-point of the joints has another shape than so many, or a value that is not finite."""
    for values in (setpoint.positions, setpoint.velocities):
        if values.shape != (joints,) or not np.isfinite(values).all():
            raise ArmError(f"a set-point of the joints is {values.tolist()}; valid are {joints} finite numbers")
