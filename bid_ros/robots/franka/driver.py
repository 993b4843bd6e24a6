"""Franka arms over franky: a process of its own has the tracker of the tool or of the joints, and watches it."""

from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmInfo, Array, Dynamics
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import FRANKY_ERRORS, arm_error, sentence
from bid_ros.robots.franka.hand import MAX_WIDTH, FrankaHand
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.link import DriverLink
from bid_ros.robots.process_arm import ProcessArm
from bid_ros.robots.protocol import DriverRequest

JOINTS: Final = 7
CLEAR_S: Final = 8.0  # the automatic error recovery of a robot takes some seconds


class FrankaArm(ProcessArm):
    """A Franka Panda or FR3, or its twin, as a :class:`bid_ros.robots.process_arm.ProcessArm`.

    ``bid_ros.robots.franka.process`` has the connection. Between commands the arm stays in impedance control and keeps
    its pose; only :meth:`stop` leaves control. A recovery is the robot's own, or a new connection where the old one is
    lost. The hand has a connection of its own, from here.

    Args:
        config: configuration of the arm.
    """

    def __init__(self, config: FrankaConfig) -> None:
        super().__init__(config.address, JOINTS, CLEAR_S)
        self._config, self._released = config, False

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        prefix, gripper = self._config.joint_prefix, self._config.gripper
        joints = tuple(f"{prefix}_joint{i + 1}" for i in range(JOINTS))
        fingers = (f"{prefix}_finger_joint1", f"{prefix}_finger_joint2") if gripper else ()
        return ArmInfo("franka", self._address, joints, fingers, MAX_WIDTH if gripper else 0.0)

    def _open_link(self, release: bool) -> DriverLink:
        module = "bid_ros.robots.franka.process"
        return DriverLink(module, self._config, release, self._config.beat_timeout_s, "franky")

    def _connect(self, release: bool) -> None:
        self._released = release
        super()._connect(release)
        if release:
            self._demand(self._connected().ask(DriverRequest.CLEAR, wait_s=CLEAR_S))

    def _motion(self, target: Array, dynamics: Dynamics | None) -> tuple[object, ...]:
        return tuple(target.tolist()), dynamics or self._config.dynamics

    def _open_gripper(self) -> GripperThread | None:
        if not self._config.gripper:
            return None
        try:
            hand = GripperThread(
                FrankaHand(self._config, self._released),
                self._config.gripper_thresholds,
                (ArmError, *FRANKY_ERRORS),
                self._lose_hand,
            )
            hand.start()
        except FRANKY_ERRORS as error:
            raise arm_error(self._address, error) from error
        return hand

    def _lose_hand(self, error: Exception) -> None:
        known = isinstance(error, ArmError)
        self._fail(str(error) if known else f"hand of the {sentence(self._address, error)}")
