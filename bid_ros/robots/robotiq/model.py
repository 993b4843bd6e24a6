"""Two-finger gripper of the size and strength of a Robotiq 2F-85, as MuJoCo's MJCF, and its drive.

Two fingers slide along the tool's y axis and are coupled, as the real ones are by their screw: one motor closes both
and a held object stays in the middle of the hand. The real fingers swing on a linkage, which also moves their tips
by up to 14 mm along the tool's axis; that is not modelled.

Source: Robotiq, "2F-85 and 2F-140 instruction manual", specifications: stroke 85 mm, grip force 20 to 235 N,
closing speed 20 to 150 mm/s, mass 0.925 kg.
"""

import enum
import xml.etree.ElementTree as ET
from typing import Final

import mujoco
import numpy as np

from bid_ros.core.checks import check_range
from bid_ros.core.errors import ArmError
from bid_ros.robots.robotiq.registers import FORCE_RANGE, MAX_OPENING, SPEED_RANGE
from bid_ros.sim.mjcf import HAND_BITS, NO_BITS, geom

TOOL_FROM_FLANGE: Final = 0.17  # m along the flange's z axis, the middle of the pads
PAD_SIZE: Final = (0.022, 0.036)  # m across the hand, and along the tool's axis

OPENING: Final = "gripper_opening"  # tendon and actuator
FINGERS: Final = ("left_finger", "right_finger")  # bodies; their joints are called finger + "_joint"
PADS: Final = ("left_pad", "right_pad")  # geoms

# Rubber on a firm object: MuJoCo's default contact is so soft for small masses that the pads would sink into it.
GRIP: Final = {"friction": "1.5 0.01 0.0001", "condim": "4", "solref": "0.004 1", "solimp": "0.95 0.99 0.0005"}

_STIFFNESS: Final = 20000.0  # N/m of the opening
_DAMPING: Final = 150.0  # N s/m
_DARK: Final = "0.20 0.21 0.23 1"
_RUBBER: Final = "0.10 0.10 0.11 1"


def add_gripper(scene: ET.Element, flange: ET.Element) -> ET.Element:
    """Mount the gripper on a flange and return its body, whose frame is the flange's.

    Args:
        scene: the ``mujoco`` element; it takes the coupling of the fingers and the actuator.
        flange: the body to mount it on, such as what :func:`bid_ros.robots.ur.twin.model.add_ur5e` returns.
    """
    hand = ET.SubElement(flange, "body", name="gripper")
    ET.SubElement(hand, "inertial", pos="0 0 0.05", mass="0.805", diaginertia="0.0009 0.0009 0.0005")
    geom(hand, "cylinder", size="0.0375 0.02", pos="0 0 0.02", rgba=_DARK, **NO_BITS)
    geom(hand, "box", size="0.03 0.05 0.03", pos="0 0 0.07", rgba=_DARK, **HAND_BITS)
    for finger, pad, side in zip(FINGERS, PADS, (1, -1), strict=True):
        _add_finger(hand, finger, pad, side)
    _couple(scene)
    return hand


def _add_finger(hand: ET.Element, name: str, pad: str, side: int) -> None:
    """Add a finger whose pad's face is at the finger's own y = 0; the joint is half the opening, m."""
    body = ET.SubElement(hand, "body", name=name, pos=f"0 0 {TOOL_FROM_FLANGE}")
    ET.SubElement(
        body,
        "joint",
        name=f"{name}_joint",
        type="slide",
        axis=f"0 {side} 0",
        range=f"0 {MAX_OPENING / 2}",
        armature="0.3",  # kg, of screw and motor as the finger feels them
        damping="5",
    )
    ET.SubElement(body, "inertial", pos=f"0 {0.012 * side} -0.02", mass="0.06", diaginertia="0.00004 0.00004 0.00001")
    width, height = PAD_SIZE
    shank = {"size": "0.009 0.006 0.045", "pos": f"0 {0.0125 * side} -0.027"}
    geom(body, "box", rgba=_DARK, **shank, **HAND_BITS)
    size = f"{width / 2} 0.003 {height / 2}"
    geom(body, "box", name=pad, size=size, pos=f"0 {0.003 * side} 0", rgba=_RUBBER, **GRIP, **HAND_BITS)


def _couple(scene: ET.Element) -> None:
    left, right = (f"{finger}_joint" for finger in FINGERS)
    equality = _section(scene, "equality")
    ET.SubElement(equality, "joint", joint1=left, joint2=right, polycoef="0 1 0 0 0", solref="0.004 1")
    tendon = ET.SubElement(_section(scene, "tendon"), "fixed", name=OPENING)
    for joint in (left, right):
        ET.SubElement(tendon, "joint", joint=joint, coef="1")
    ET.SubElement(
        _section(scene, "actuator"),
        "position",
        name=OPENING,
        tendon=OPENING,
        kp=str(_STIFFNESS),
        kv=str(_DAMPING),
        ctrlrange=f"0 {MAX_OPENING}",
        forcerange=f"{-FORCE_RANGE[1]} {FORCE_RANGE[1]}",
    )


def _section(scene: ET.Element, name: str) -> ET.Element:
    found = scene.find(name)
    return ET.SubElement(scene, name) if found is None else found


class FingerStatus(enum.IntEnum):
    """What the fingers do, numbered as Robotiq's gOBJ register."""

    MOVING = 0
    BLOCKED_OPENING = 1
    BLOCKED_CLOSING = 2
    AT_TARGET = 3


class FingerDrive:
    """Drives the gripper of a compiled scene: goes to an opening at a speed, and presses with a force when blocked.

    Call :meth:`step` once before every step of the physics, in the thread that steps it.

    Args:
        model, data: of a scene with the gripper in it, which the drive opens. It sets the actuator's force range in
            ``model``.

    Attributes:
        target: opening that was asked for last, m.

    Raises:
        ArmError: if the scene has no gripper.
    """

    _ARRIVED_M: Final = 0.001
    _STILL_M_S: Final = 0.003
    _BLOCKED_S: Final = 0.05  # at rest away from the target for this long is blocked

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        try:
            joints = [model.joint(f"{finger}_joint") for finger in FINGERS]
            self._actuator = int(model.actuator(OPENING).id)
        except KeyError as error:
            raise ArmError(f"the scene has no gripper to drive: {error.args[0]}; add it with add_gripper") from error
        self._model, self._data = model, data
        self._qpos = [int(joint.qposadr[0]) for joint in joints]
        self._qvel = [int(joint.dofadr[0]) for joint in joints]
        self.place(MAX_OPENING)

    @property
    def opening(self) -> float:
        """Distance between the pads, m."""
        return float(self._data.qpos[self._qpos[0]] + self._data.qpos[self._qpos[1]])

    @property
    def speed(self) -> float:
        """Rate of the opening, m/s, negative when closing."""
        return float(self._data.qvel[self._qvel[0]] + self._data.qvel[self._qvel[1]])

    @property
    def status(self) -> FingerStatus:
        """Whether the fingers move, are at their target or are blocked before it."""
        if abs(self.opening - self.target) < self._ARRIVED_M:
            return FingerStatus.AT_TARGET
        if self._still_s < self._BLOCKED_S:
            return FingerStatus.MOVING
        return FingerStatus.BLOCKED_CLOSING if self.opening > self.target else FingerStatus.BLOCKED_OPENING

    def place(self, opening: float) -> None:
        """Put the fingers at an opening at once, at rest, for the layout of a scene; ArmError if it is impossible."""
        self.command(opening, SPEED_RANGE[1], FORCE_RANGE[0])
        self._ramp = opening
        self._data.qpos[self._qpos] = opening / 2
        self._data.qvel[self._qvel] = 0.0

    def command(self, opening: float, speed: float, force: float) -> None:
        """Go to ``opening`` m at ``speed`` m/s and press with up to ``force`` N.

        Raises:
            ArmError: if one of them is outside what the gripper can do.
        """
        for name, value, low, high, unit in (
            ("opening", opening, 0.0, MAX_OPENING, "m"),
            ("speed", speed, SPEED_RANGE[0], SPEED_RANGE[1], "m/s"),
            ("force", force, FORCE_RANGE[0], FORCE_RANGE[1], "N"),
        ):
            check_range("gripper", name, value, low, high, ArmError, unit)
        self.target, self._speed = opening, speed
        # From where the fingers are: what was wound up while they were blocked is let go.
        self._ramp = self.opening
        self._still_s = 0.0
        self._model.actuator_forcerange[self._actuator] = (-force, force)

    def stop(self) -> None:
        """Stop where the set-point is: moving fingers stand, and what they hold stays held."""
        self.target = self._ramp

    def step(self, dt: float) -> None:
        """Move the set-point on by ``dt`` s and give it to the actuator."""
        travel = self._speed * dt
        self._ramp += float(np.clip(self.target - self._ramp, -travel, travel))
        self._data.ctrl[self._actuator] = self._ramp
        self._still_s = self._still_s + dt if abs(self.speed) < self._STILL_M_S else 0.0
