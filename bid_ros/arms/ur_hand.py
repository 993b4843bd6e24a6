"""The gripper of a UR from connection to end: the device, the thread that owns it, and the fault it may have."""

from __future__ import annotations

from collections.abc import Callable

from bid_ros.arms.gripper import GripperThread
from bid_ros.arms.robotiq import RobotiqConfig, RobotiqGripper
from bid_ros.arms.ur_config import UrConfig
from bid_ros.errors import ArmError


class UrHand:
    """A connected gripper. Every method may be called from any thread and returns at once, but :meth:`close`.

    Args:
        config: of the arm that it is mounted on.
        gripper: part of that configuration.
        on_fault: called once, with one sentence, when the gripper is lost.

    Attributes:
        fault: that sentence, empty without one. It stays: a new connection is a new object.

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
        """Ask for an opening in m; the newest request wins."""
        self._thread.request(width)

    def close(self) -> None:
        """End the thread and disconnect; waits up to 2 s. The fingers stay where they are."""
        self._thread.stop()
        self._device.close()

    def _lose(self, error: Exception) -> None:
        self.fault = str(error)
        self._on_fault(self.fault)
