"""A Cartesian impedance controller, as CRISP's is: the tool hangs on a spring and a damper from the newest pose.

Source: crisp_controllers, ``cartesian_controller.cpp`` (github.com/utiasDSL/crisp_controllers). What is kept of it:

- The newest pose holds until another comes: there is no time-out. The frame of a message is not read.
- Poses of a topic with more than one publisher are ignored.
- The wanted pose is smoothed, and the error is clipped. The damper works against the tool's own motion, so it lags.

The real one commands torques. Here a unit mass hangs on spring and damper, and the joints go where it is. So the tool
does not give way to what it touches.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bid_ros.control.chain import Chain
from bid_ros.core.rotation import Array, matrix_from_quaternion, matrix_from_vector, vector_from_matrix

LOG = logging.getLogger(__name__)
RATE: Final = 60.0  # rad/s of spring and mass, critically damped: it lags by 2 / RATE s
EVERY: Final = 2  # cycles between two steps: they cost more than all else in a cycle
SMOOTHING: Final = 0.34  # share of the way to the newest pose in a step of 4 ms: 0.1 at the controller's 1 kHz
CLIP: Final = np.array([0.1] * 3 + [0.5] * 3)  # m and rad
DAMPING: Final = 1e-4  # of the squared Jacobian


class ImpedanceController:
    """Takes poses of the tool link in the base link.

    Args:
        chain: of the arm, base to tool link.
        publishers: returns how many publish poses.
        period_s: between two cycles.
    """

    name = "cartesian_impedance_controller"
    topic = "target_pose"
    type_name = "geometry_msgs/msg/PoseStamped"

    def __init__(self, chain: Chain, publishers: Callable[[], int], period_s: float) -> None:
        self._chain, self._publishers, self._step_s = chain, publishers, EVERY * period_s
        self._joints, self._twist = np.zeros(chain.joints), np.zeros(6)
        self._goal, self._smooth = (np.zeros(3), np.eye(3)), (np.zeros(3), np.eye(3))
        self.refused = self._cycles = 0

    def activate(self, joints: Array) -> None:
        """Hold the tool where measured joints ``(n,)`` rad have it."""
        self._joints, self._twist = joints.copy(), np.zeros(6)
        self._goal = self._smooth = self._chain.forward(joints)

    def take(self, message: Any, now_ns: int) -> None:
        """Take a pose, unless somebody else sends poses too."""
        place, turn = message.pose.position, message.pose.orientation
        values = np.array([place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w])
        if self._publishers() > 1 or not np.isfinite(values).all():
            self.refused += 1
            LOG.warning("%s ignores %s: more than one publisher, or not finite", self.name, values.tolist())
            return
        self._goal = values[:3], matrix_from_quaternion(values[3:] / np.linalg.norm(values[3:]))

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the joints ``(n,)`` rad one cycle later."""
        self._cycles += 1
        if self._cycles % EVERY == 0:
            self._step()
        return self._joints.copy()

    def _step(self) -> None:
        place, rotation, jacobian = self._chain.motion(self._joints)
        wanted, turned = self._smooth
        wanted = wanted + SMOOTHING * (self._goal[0] - wanted)
        turned = matrix_from_vector(SMOOTHING * vector_from_matrix(self._goal[1] @ turned.T)) @ turned
        self._smooth = wanted, turned
        error = np.concatenate([wanted - place, vector_from_matrix(turned @ rotation.T)])
        pull = RATE**2 * np.clip(error, -CLIP, CLIP) - 2 * RATE * self._twist
        self._twist = self._twist + self._step_s * pull
        self._joints = self._joints + self._step_s * solved(jacobian, self._twist)


def solved(jacobian: Array, twist: Array) -> Array:
    """Return the damped least-squares speeds ``(n,)`` rad/s of a Jacobian ``(6, n)`` for a twist ``(6,)``."""
    square = jacobian @ jacobian.T
    square[np.diag_indices(6)] += DAMPING**2
    speeds: Array = jacobian.T @ np.linalg.solve(square, twist)
    return speeds
