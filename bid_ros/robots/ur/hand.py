"""The gripper of a UR: the device, the thread that owns it, and its fault."""

from __future__ import annotations

from collections.abc import Callable

from bid_ros.core.errors import ArmError
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.robotiq.driver import RobotiqConfig, RobotiqGripper
from bid_ros.robots.ur.config import UrConfig


class UrHand:
    """A connected gripper. Every method may be called from any thread and returns at once, but :meth:`close`.

    Args:
        config: configuration of the arm.
        gripper: its part for the gripper.
        on_fault: called once, with one sentence, when the gripper is lost.

    Attributes:
        fault: that sentence; empty without one. It stays: a new connection needs a new object.

    Raises:
        ArmError: the gripper does not answer.
    """

    def __init__(self, config: UrConfig, gripper: RobotiqConfig, on_fault: Callable[[str], None]) -> None:
        self.fault = ""
        self._on_fault = on_fault
        self._device = RobotiqGripper(gripper, config.address)
        self._thread = GripperThread(self._device, config.gripper_thresholds, (ArmError,), self._lose)
        try:
            self._thread.start()
        except ArmError:
            self._device.close()
            raise

    @property
    def width(self) -> float:
        """Newest measured opening in m."""
        return self._thread.width

    @property
    def busy(self) -> bool:
        """Whether a command is running."""
        return self._thread.busy

    def request(self, width: float) -> None:
        """Command an opening in m. The newest request wins."""
        self._thread.request(width)

    def close(self) -> None:
        """End the thread and disconnect. Waits up to 2 s. The fingers stay where they are."""
        self._thread.stop()
        self._device.close()

    def _lose(self, error: Exception) -> None:
        self.fault = str(error)
        self._on_fault(self.fault)
