"""The commanded arm: one motion at a time moves the set-points, and the plant follows them."""

from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import Kinematics, ToolKinematics
from bid_ros.robots.ur.pose import Array, Numbers
from bid_ros.robots.ur.twin.joint_motions import Hold, RunningMotion, ServoJ, StopJ
from bid_ros.robots.ur.twin.plant import Plant

STOP_DECELERATION: Final = 15.0  # rad/s^2, when a program ends or a protective stop is triggered
SLIDER_S: Final = 0.5  # in which the controller follows its speed slider from one end to the other
DEVIATION_LIMIT: Final = 0.3  # rad between commanded and actual angle, a collision by all appearances


class Robot:
    """Commanded joints, the motion that moves them and the arm that follows.

    Args:
        plant: the arm.
        kinematics: of the arm.

    Attributes:
        q, qd, qdd: commanded angles, speeds and accelerations ``(6,)``, rad and s.
        tcp: pose ``(6,)`` of the tool centre point in the flange's frame.
        speed_fraction: where the pendant's speed slider stands, 0 to 1: time passes so much slower for every motion.
        payload: kg, and its centre ``(3,)`` in m from the flange, as a client told it.
    """

    def __init__(self, plant: Plant, kinematics: Kinematics) -> None:
        self.plant = plant
        self._kinematics = kinematics
        self.q: Array = plant.joint_positions.copy()
        self.qd: Array = np.zeros(6)
        self.qdd: Array = np.zeros(6)
        self.tcp: tuple[float, ...] = (0.0,) * 6
        self.payload: tuple[float, ...] = (0.0,) * 4
        self.speed_fraction = self._pace = 1.0
        self._paced = self.qd  # speeds in the time of the motion, which the slider makes slower
        self._motion: RunningMotion = Hold()
        self._free = False

    @property
    def arrived(self) -> bool:
        """Whether the motion has come to its end. In freedrive each is over at once: the arm follows none."""
        return self._free or self._motion.done

    def start(self, motion: RunningMotion) -> None:
        """Let ``motion`` take over from the next cycle on."""
        self._motion = motion

    def set_free(self) -> None:
        """Let a person guide the arm, which follows no motion until :meth:`hold_again`, :meth:`stop` or the brakes."""
        self._free = True

    def hold_again(self) -> None:
        """End freedrive: the arm holds where it was left, but for a servo that still runs, which draws on at it."""
        if self._free:
            self._take_actual()
            if not isinstance(self._motion, ServoJ):
                self.start(Hold())
        self._free = False

    def stop(self) -> None:
        """Bring the arm to rest as the controller does when a program ends."""
        self._free = False
        self._paced = self.qd
        self.start(StopJ(STOP_DECELERATION))

    @property
    def tool(self) -> ToolKinematics:
        """Kinematics of the arm and its tool."""
        return ToolKinematics(self._kinematics, self.tcp)

    def inverse(self, pose: Numbers) -> Array:
        """Return the joint angles ``(6,)`` that put the tool at ``pose``, nearest to where the arm is.

        Raises:
            ArmError: if the pose cannot be reached.
        """
        return self.tool.inverse(pose, self.plant.joint_positions)

    def brake(self, dt: float) -> None:
        """Pass one cycle of ``dt`` s with the brakes closed."""
        self._free = False
        self.plant.hold(dt)
        self.start(Hold())
        self._take_actual()

    def cycle(self, dt: float) -> None:
        """Pass one cycle of ``dt`` s.

        Raises:
            ArmError: if the motion cannot go on or the arm does not follow; the caller has to stop it.
        """
        before = self.qd
        if self._free:
            self._yield(dt)
            return
        self._pace += min(max(self.speed_fraction - self._pace, -dt / SLIDER_S), dt / SLIDER_S)
        if self._pace > 0:
            self.q, self._paced = self._motion.step(self.q, self._paced, dt * self._pace)
        self.qd = self._paced * self._pace
        self.qdd = (self.qd - before) / dt
        self.plant.step(self.q, self.qd, dt)
        actual = self.plant.joint_positions
        deviation = np.abs(self.q - actual)
        worst = int(deviation.argmax())
        if deviation[worst] > DEVIATION_LIMIT:
            self._take_actual()
            raise ArmError(
                f"joint {worst + 1} is {deviation[worst]:.2f} rad off its path; valid is up to {DEVIATION_LIMIT}: "
                "something is in the way"
            )

    def _yield(self, dt: float) -> None:
        """Pass one cycle of ``dt`` s in freedrive: the motors carry the arm's weight, and slow what pushes it."""
        self.plant.step(self.plant.joint_positions.copy(), np.zeros(6), dt)
        self._take_actual()
        self.qdd = np.zeros(6)

    def _take_actual(self) -> None:
        """Command the arm to rest where it is."""
        self.q, self.qd = self.plant.joint_positions.copy(), np.zeros(6)
        self._paced = self.qd
