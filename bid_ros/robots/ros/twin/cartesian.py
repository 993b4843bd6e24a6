"""What takes poses and twists of the tool: a Cartesian impedance controller, and MoveIt Servo.

The impedance controller is as CRISP's: the tool hangs on a spring and a damper from the newest pose. Source:
crisp_controllers, ``cartesian_controller.cpp`` (github.com/utiasDSL/crisp_controllers). What is kept of it:

- The newest pose holds until another comes: there is no time-out. The frame of a message is not read.
- Poses of a topic with more than one publisher are ignored.
- The wanted pose is smoothed, and the error is clipped. The damper works against the tool's own motion, so it lags.

The real one commands torques. Here a unit mass hangs on spring and damper, and the joints go where it is. So the tool
does not give way to what it touches.

MoveIt Servo makes twists into short trajectories for a joint trajectory controller. Source: moveit_servo,
``servo_node.cpp``, ``servo.cpp``, ``utils/command.cpp`` and ``utils/common.cpp``, and its parameters
(github.com/moveit/moveit2). What is kept of it:

- A twist counts until it is ``TIMEOUT_S`` old by its stamp. Then the arm halts.
- Twists are in m/s and rad/s (``speed_units``), and are cut to ``LINEAR`` and ``ANGULAR``.
- Joints near a limit, or a singular posture, halt all joints. Before that, a bad posture and fast joints slow it down.
- What is commanded is for ``LATENCY_S`` later, so the arm lags. The next command goes on from there.
- A frame that it does not know makes a twist invalid.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bid_ros.control.chain import Chain, damped_solution
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array, matrix_from_quaternion, matrix_from_vector, vector_from_matrix
from bid_ros.core.stamps import stamp_ns
from bid_ros.robots.ros.twin.trajectory_controller import Knot

LOG = logging.getLogger(__name__)
# Of the impedance controller.
RATE: Final = 60.0  # rad/s of spring and mass, critically damped: it lags by 2 / RATE s
EVERY: Final = 2  # cycles between two steps: they cost more than all else in a cycle
SMOOTHING: Final = 0.34  # share of the way to the newest pose in a step of 4 ms: 0.1 at the controller's 1 kHz
CLIP: Final = np.array([0.1] * 3 + [0.5] * 3)  # m and rad
DAMPING: Final = 1e-8  # of the squared Jacobian
# Of MoveIt Servo.
PERIOD_S: Final = 0.01
TIMEOUT_S: Final = 0.1
LATENCY_S: Final = 0.05  # max_expected_latency; it is a parameter, 0.1 if nobody sets it
LINEAR, ANGULAR = 1.0, 3.0  # m/s and rad/s: scale.linear and scale.rotational, 0.4 and 0.8 if nobody sets them
SLOWER, HALT = 17.0, 30.0  # condition number of the Jacobian
MARGIN: Final = 0.1  # rad inside the joints' limits
LEAST_POINTS: Final = 3


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
        self._joints = self._joints + self._step_s * damped_solution(jacobian, self._twist, DAMPING)


class TwistServo:
    """Takes twists of the tool link along the axes of the base link.

    Args:
        chain: of the arm, base to tool link.
        frame: name of the base link.
        reach: rad either way that every joint has.
        speed: rad/s that every joint has.
    """

    topic = "servo_node/delta_twist_cmds"
    type_name = "geometry_msgs/msg/TwistStamped"

    def __init__(self, chain: Chain, frame: str, reach: float, speed: float) -> None:
        self._chain, self._frame, self._reach, self._speed = chain, frame, reach, speed
        self._window: deque[Knot] = deque()
        self._twist: tuple[int, Array] | None = None  # its stamp, ns; m/s and rad/s
        self.refused = 0

    def take(self, message: Any) -> None:
        """Take a twist."""
        parts = [getattr(part, axis) for part in (message.twist.linear, message.twist.angular) for axis in "xyz"]
        if message.header.frame_id != self._frame or not np.isfinite(parts).all():
            self.refused += 1
            LOG.warning("servo: %s in frame '%s' is invalid", parts, message.header.frame_id)
            self._twist = None
            return
        self._twist = stamp_ns(message), np.array(parts)

    def update(self, now_ns: int, joints: Array) -> Sequence[Knot]:
        """Return the trajectory to follow from now on; nothing if there is none.

        Args:
            now_ns: wall time, ns.
            joints: ``(n,)`` rad, measured.
        """
        ahead_ns = round(LATENCY_S * NANOSECONDS)
        if not self._window or self._window[-1].time_ns <= now_ns:
            self._window.clear()
            state = Knot(now_ns, joints.copy(), np.zeros(len(joints)))
        else:
            state = self._window[-1]
        if self._twist is None:
            self._window.clear()
            return ()
        if now_ns - self._twist[0] < TIMEOUT_S * NANOSECONDS:
            speeds = self._speeds(state.joints, self._twist[1])
        else:
            speeds = np.zeros(len(joints))
            if state.speeds is None or not np.any(state.speeds):
                self._twist = None  # it has halted
        self._append(Knot(now_ns + ahead_ns, state.joints + PERIOD_S * speeds, speeds), now_ns - ahead_ns)
        return list(self._window)[:-1] if len(self._window) >= LEAST_POINTS else ()

    def _speeds(self, joints: Array, twist: Array) -> Array:
        """Return the joint speeds ``(n,)`` rad/s for a twist, halted or slowed down."""
        jacobian = self._chain.jacobian(joints)
        values = np.linalg.svd(jacobian, compute_uv=False)
        condition = float(values[0] / max(values[5], 1e-9))
        if condition >= HALT:
            return np.zeros(len(joints))
        linear, angular = float(np.linalg.norm(twist[:3])), float(np.linalg.norm(twist[3:]))
        cut = np.concatenate([twist[:3] / max(1.0, linear / LINEAR), twist[3:] / max(1.0, angular / ANGULAR)])
        speeds = damped_solution(jacobian, cut, DAMPING) * min(1.0, (HALT - condition) / (HALT - SLOWER))
        speeds /= max(1.0, float(np.abs(speeds).max()) / self._speed)
        there = joints + PERIOD_S * speeds
        out = (np.abs(there) > self._reach - MARGIN) & (there * speeds > 0)
        return np.zeros(len(joints)) if out.any() else speeds

    def _append(self, new: Knot, oldest_ns: int) -> None:
        """Add what comes next, and set the speed before it: the smaller of both sides, 0 where it turns round."""
        while self._window and self._window[0].time_ns < oldest_ns:
            self._window.popleft()
        if len(self._window) >= 2:
            before, last = self._window[-2], self._window[-1]
            coming = (last.joints - before.joints) / ((last.time_ns - before.time_ns) / NANOSECONDS)
            going = (new.joints - last.joints) / ((new.time_ns - last.time_ns) / NANOSECONDS)
            smaller = np.where(np.abs(coming) < np.abs(going), coming, going)
            speeds = np.where(coming * going < 0, 0.0, smaller)
            self._window[-1] = Knot(last.time_ns, last.joints, speeds)
            new = Knot(new.time_ns, new.joints, speeds)
        self._window.append(new)
