"""Listens to the arm of a running system: where it is, and whether it rests."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from rclpy.node import Node

from bid_msgs.msg import ArmStatus
from bid_ros.calibration.rigid import apart, from_pose
from bid_ros.core.errors import CalibrationError
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import Array
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import ARM_STATUS, TOPICS
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.interrupt import interrupt_after
from bid_ros.nodes.topics import profile

REST_NS: Final = 500_000_000  # for which the arm has not moved
STILL: Final = (0.0005, 0.1)  # m and degrees that it may have moved in that time
SILENT_S: Final = 15.0  # for an arm or a camera
TURN_S: Final = 0.02
SILENT: Final = "no arm is heard on arm/status; valid is a running system: bid up, or bid teleop"


class ArmWatch:
    """Keeps where the tool was in the last half second. One thread only.

    Args:
        node: of this process.

    Attributes:
        joints: newest measured ones, rad.
        source: of the chunk that the arm follows; empty: of none.
    """

    def __init__(self, node: Node) -> None:
        self._executor = FastExecutor()
        self._executor.add_node(node)
        self._poses: deque[tuple[int, Array]] = deque()
        self._heard = time.monotonic()
        self.source = ""
        self.joints: Array = np.empty(0)
        node.create_subscription(ArmStatus, ARM_STATUS, self._on_status, profile(TOPICS[ARM_STATUS].qos))
        node.create_timer(TURN_S, lambda: None)

    def close(self) -> None:
        """Stop listening."""
        self._executor.shutdown()

    def until(self, condition: Callable[[], Any], timeout_s: float) -> bool:
        """Listen until a condition holds; False when the time is over."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                return False
            with interrupt_after():
                self._executor.spin_once(timeout_sec=TURN_S)
        return True

    @property
    def tool(self) -> Array | None:
        """Newest measured pose ``(4, 4)`` of the tool, base frame; None: none was heard."""
        return self._poses[-1][1] if self._poses else None

    def driven(self) -> bool:
        """Whether the arm rests, and follows a teleoperation device."""
        return self.source == "teleop" and self.rests()

    def rests(self) -> bool:
        """Whether the arm has rested for half a second."""
        last = self.tool
        return last is not None and self._is_full() and all(within(pose, last, STILL) for _, pose in self._poses)

    def listen(self) -> None:
        """Hear where the arm is for half a second from now on.

        Raises:
            CalibrationError: it is silent.
        """
        for _ in range(2 * TOPICS[ARM_STATUS].qos.depth):  # what waited since a person was asked says nothing of now
            self._executor.spin_once(timeout_sec=0.0)
        self._poses.clear()
        if not self.until(self._is_full, SILENT_S):
            raise CalibrationError(SILENT)

    def unrest(self) -> str:
        """Return how far the arm has moved in the last half second, in one sentence; empty: it rests."""
        if self.rests():
            return ""
        moved, turned = np.max([apart(pose, self._poses[-1][1]) for _, pose in self._poses], axis=0)
        return (
            f"the arm moved by {1e3 * moved:.1f} mm and {turned:.1f} degrees while the point was taken; valid is up to "
            f"{1e3 * STILL[0]:g} mm and {STILL[1]:g} degrees in {REST_NS / 1e9:g} s"
        )

    def _is_full(self) -> bool:
        """Whether the poses cover half a second."""
        return len(self._poses) > 1 and self._poses[-1][0] - self._poses[0][0] >= 0.9 * REST_NS

    def _on_status(self, message: ArmStatus) -> None:
        now, self.source, self._heard = stamp_ns(message), str(message.source), time.monotonic()
        self.joints = np.array(message.joint_positions)
        self._poses.append((now, from_pose(*pose_arrays(message.tool))))
        while self._poses[0][0] < now - REST_NS or self._poses[0][0] > now:
            self._poses.popleft()


def within(one: Array, other: Array, most: tuple[float, float]) -> bool:
    """Whether two poses ``(4, 4)`` are at most so many m and degrees apart."""
    distance, angle = apart(one, other)
    return distance <= most[0] and angle <= most[1]
