"""The commanded arm: one motion at a time moves the set-points, and the plant follows them."""

from collections import deque
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import Kinematics, ToolKinematics
from bid_ros.robots.ur.pose import Array, Numbers
from bid_ros.robots.ur.twin.joint_motions import Hold, RunningMotion, StopJ
from bid_ros.robots.ur.twin.plant import Plant

STOP_DECELERATION: Final = 15.0  # rad/s^2, when a program ends or a protective stop is triggered
SCALE_RATE: Final = 4.0  # 1/s, how fast the speed slider and a pause take hold
SMALLEST_SCALE: Final = 0.01
HISTORY: Final = 500  # cycles of past joint positions
STEADY_SPEED: Final = 1e-3  # rad/s
DEVIATION_LIMIT: Final = 0.3  # rad between commanded and actual angle, a collision by all appearances


class Robot:
    """Commanded joints, the motion that moves them and the arm that follows.

    The speed slider and a pause stretch a motion in time (the path stays the same): the motion sees a shorter cycle.

    Args:
        plant: the arm.
        kinematics: of the arm.

    Attributes:
        q, qd, qdd: commanded angles, speeds and accelerations ``(6,)``, rad and s.
        tcp: pose ``(6,)`` of the tool centre point in the flange's frame.
        payload: kg; payload_cog: ``(3,)`` m from the flange; payload_inertia: ``(6,)`` kg m^2.
        waypoint: target ``(6,)`` of the active move as a tool pose.
        scale: how much slower than commanded the arm goes, 0 to 1.
        deviation_ratio: largest deviation of an actual from a commanded angle, as a share of what stops the arm.
    """

    def __init__(self, plant: Plant, kinematics: Kinematics) -> None:
        self.plant = plant
        self.kinematics = kinematics
        self.q: Array = plant.joint_positions.copy()
        self.qd: Array = np.zeros(6)
        self.qdd: Array = np.zeros(6)
        self.tcp: tuple[float, ...] = (0.0,) * 6
        self.payload = 0.0
        self.payload_cog: tuple[float, ...] = (0.0,) * 3
        self.payload_inertia: tuple[float, ...] = (0.0,) * 6
        self.waypoint: tuple[float, ...] = (0.0,) * 6
        self.history: deque[Array] = deque([self.q], maxlen=HISTORY)
        self.scale = 1.0
        self.deviation_ratio = 0.0
        self._motion: RunningMotion = Hold()
        self._follows_slider = False
        self._pace: Array = np.zeros(6)  # speed in the motion's own time

    @property
    def arrived(self) -> bool:
        """Whether the motion has come to its end."""
        return self._motion.done

    @property
    def at_rest(self) -> bool:
        """Whether commanded and actual speeds are zero."""
        return not self.qd.any() and bool(np.abs(self.plant.joint_velocities).max() < STEADY_SPEED)

    def start(self, motion: RunningMotion, follows_slider: bool = False) -> None:
        """Let ``motion`` take over from the next cycle on; moves follow the speed slider, all else does not."""
        if not follows_slider:
            self.scale = 1.0
        self._pace = self.qd / max(self.scale, SMALLEST_SCALE)
        self._motion = motion
        self._follows_slider = follows_slider

    def stop(self) -> None:
        """Bring the arm to rest as the controller does when a program ends."""
        self.start(StopJ(STOP_DECELERATION))

    def limiter(self, slider: float) -> float:
        """Share, 0 to 1, of the speed that the ``slider`` allows: below 1 while a pause or a raised slider takes hold.

        Clients multiply it with the slider.
        """
        allowed = slider if self._follows_slider else 1.0
        return min(1.0, self.scale / max(allowed, SMALLEST_SCALE))

    @property
    def tool(self) -> ToolKinematics:
        """Kinematics of the arm and its tool."""
        return ToolKinematics(self.kinematics, self.tcp)

    def pose(self) -> Array:
        """Actual tool pose ``(6,)``."""
        return self.tool.forward(self.plant.joint_positions)

    def inverse(self, pose: Numbers, near: Numbers | None = None) -> Array:
        """Return the joint angles ``(6,)`` that put the tool at ``pose``, nearest to ``near`` or to where the arm is.

        Raises:
            ArmError: if the pose cannot be reached.
        """
        return self.tool.inverse(pose, self.plant.joint_positions if near is None else near)

    def brake(self, dt: float) -> None:
        """Pass one cycle of ``dt`` s with the brakes closed."""
        self.plant.hold(dt)
        self.start(Hold())
        self._command(self.plant.joint_positions.copy(), np.zeros(6), dt)
        self.deviation_ratio = 0.0

    def cycle(self, dt: float, slider: float, paused: bool) -> None:
        """Pass one cycle of ``dt`` s.

        Args:
            slider: of the speed slider, 0 to 1.
            paused: bring the arm to rest on its path.

        Raises:
            ArmError: if the motion cannot go on or the arm does not follow; the caller has to stop it.
        """
        self._scale_towards(0.0 if paused else slider if self._follows_slider else 1.0, dt)
        if self.scale > 0.0:
            q, self._pace = self._motion.step(self.q, self._pace, dt * self.scale)
            self._command(q, self._pace * self.scale, dt)
        else:
            self._command(self.q, np.zeros(6), dt)
        self.plant.step(self.q, self.qd, dt)
        self.history.append(self.plant.joint_positions.copy())
        self._check_deviation()

    def _scale_towards(self, wanted: float, dt: float) -> None:
        change = SCALE_RATE * dt
        self.scale = max(self.scale - change, min(self.scale + change, wanted))

    def _command(self, q: Array, qd: Array, dt: float) -> None:
        self.qdd = (qd - self.qd) / dt
        self.q, self.qd = q, qd

    def _check_deviation(self) -> None:
        actual = self.plant.joint_positions
        deviation = np.abs(self.q - actual)
        worst = int(deviation.argmax())
        self.deviation_ratio = float(deviation[worst]) / DEVIATION_LIMIT
        if deviation[worst] <= DEVIATION_LIMIT:
            return
        self.q, self.qd, self._pace = actual.copy(), np.zeros(6), np.zeros(6)
        raise ArmError(
            f"joint {worst + 1} is {deviation[worst]:.2f} rad off its path; valid is up to {DEVIATION_LIMIT}: "
            "something is in the way"
        )
