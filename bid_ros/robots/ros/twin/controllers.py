"""What ros2_control's two joint controllers do with what they are sent, cycle by cycle.

Written from their documentation and its examples (control.ros.org, "joint_trajectory_controller" and
"forward_command_controller"):

- A valid trajectory replaces the one that runs. Before its first point, the controller interpolates from the measured
  joints. After its last point it holds that point. A joint outside its state tolerance aborts the trajectory, and the
  measured joints are held.
- A forward controller passes on what it was sent last, if it has the right size and is finite.
- A controller that is not active takes nothing. Deactivated in motion, the last command stays on the hardware.
"""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.robots.ros.twin.trajectory import Knot, between, knots, refusal

LOG = logging.getLogger(__name__)


class JointController(Protocol):
    """A controller of all joints.

    Attributes:
        name: of the controller.
        topic: that it listens to, relative to the robot.
        type_name: of its messages.
        refused: number of messages that it did not take.
    """

    name: str
    topic: str
    type_name: str
    refused: int

    def activate(self, joints: Array) -> None:
        """Begin at measured joints ``(n,)`` rad: hold them."""

    def take(self, message: Any, now_ns: int) -> None:
        """Take a message while active."""

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the joints to command ``(n,)`` rad, from measured ones; None: leave the command as it is."""


class TrajectoryController:
    """The joint trajectory controller, with position commands.

    Args:
        names: of its joints.
        tolerance: largest distance of a joint from its trajectory on the way, rad; 0: any.
    """

    name = "joint_trajectory_controller"
    topic = f"{name}/joint_trajectory"
    type_name = "trajectory_msgs/msg/JointTrajectory"

    def __init__(self, names: Sequence[str], tolerance: float = 0.0) -> None:
        self._names, self._tolerance = tuple(names), tolerance
        self._path: list[Knot] = []
        self._new: list[Knot] = []
        self._holding = True
        self.refused = self.aborted = 0

    def activate(self, joints: Array) -> None:
        """Hold the measured joints ``(n,)`` rad."""
        self._path, self._new, self._holding = [Knot(0, joints.copy(), None)], [], True

    def take(self, message: Any, now_ns: int) -> None:
        """Take a trajectory that is valid."""
        why = refusal(message, self._names, now_ns)
        if why:
            self.refused += 1
            LOG.warning("%s refuses a trajectory: %s", self.name, why)
            return
        self.follow(knots(message, self._names, now_ns))

    def follow(self, path: Sequence[Knot]) -> None:
        """Follow points from the next cycle on, instead of those that are followed."""
        self._new = list(path)

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the joints ``(n,)`` rad of the trajectory; hold the measured ones if they are out of tolerance."""
        if self._new:
            still = None if self._new[0].speeds is None else np.zeros(len(joints))
            # The bridge to the first point begins where the joints are.
            self._path, self._new, self._holding = [Knot(now_ns, joints.copy(), still), *self._new], [], False
            if self._path[1].time_ns <= now_ns:
                del self._path[0]
        wanted = self._at(now_ns)
        ended = now_ns >= self._path[-1].time_ns
        if self._tolerance and not self._holding and not ended and np.abs(wanted - joints).max() > self._tolerance:
            self.aborted += 1
            LOG.warning("%s aborts: a joint is more than %g rad off", self.name, self._tolerance)
            self.activate(joints)
            return joints.copy()
        return wanted

    def _at(self, now_ns: int) -> Array:
        if now_ns >= self._path[-1].time_ns or len(self._path) == 1:
            return self._path[-1].joints
        after = next(number for number, knot in enumerate(self._path) if knot.time_ns > now_ns)
        return between(self._path[after - 1], self._path[after], now_ns)[0]


class ForwardController:
    """The forward position controller.

    Args:
        names: of its joints, whose order the numbers of a message have.
    """

    name = "forward_position_controller"
    topic = f"{name}/commands"
    type_name = "std_msgs/msg/Float64MultiArray"

    def __init__(self, names: Sequence[str]) -> None:
        self._count = len(names)
        self._command: Array | None = None
        self.refused = 0

    def activate(self, joints: Array) -> None:
        """Command nothing until a message comes."""
        self._command = None

    def take(self, message: Any, now_ns: int) -> None:
        """Take positions of all joints."""
        values = np.array(message.data, dtype=np.float64)
        if values.size != self._count or not np.isfinite(values).all():
            self.refused += 1
            LOG.warning("%s refuses %s; valid are %d finite numbers", self.name, values.tolist(), self._count)
            return
        self._command = values

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the positions that came last."""
        return self._command
