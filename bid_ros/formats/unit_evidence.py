"""The unit of a data set's numbers, judged by what they are called and how far they reach, with the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bid_ros.core.units import FARTHEST_M, FRACTION, FULL_TURN, PERCENT

LEROBOT: Final = ".pos"  # end of the names that LeRobot's own robots give the position of a motor, since its 0.3
EARLIER: Final = "main_"  # begin of those of SO-100 and SO-101 before
SO_ARM: Final = ("shoulder_pan", "shoulder_lift", "elbow_flex")  # in the names of SO-100, SO-101 and Koch
HUNDRED: Final = 100 * (1 + 1e-6)  # float32
MOST_TURNS_DEG: Final = 720.0
WIDEST_M: Final = 0.2  # no opening of a task is larger


@dataclass(frozen=True)
class Judged:
    """A unit and why.

    Attributes:
        unit: one of :data:`bid_ros.core.units.UNITS`; empty: the data do not tell.
        why: the evidence, for a person.
        choices: what it may be, if the data do not tell; empty: nothing that bid_ros knows.
    """

    unit: str
    why: str
    choices: tuple[str, ...] = ()


def unnamed_unit(low: float, high: float) -> Judged:
    """Return the unit of numbers that nothing calls joints: it is never decided. Arguments as :func:`joint_unit`."""
    found = joint_unit((), low, high)
    why = f"{found.why}; but nothing says that they are joints, and a tool's motion is none"
    return Judged("", why, (found.unit,) if found.unit else found.choices)


def joint_unit(names: Sequence[str], low: float, high: float) -> Judged:
    """Return the unit of joints.

    Args:
        names: of their values; empty: unknown.
        low, high: the smallest and the largest number of all of them.
    """
    most, span = max(abs(low), abs(high)), f"{low:.4g} to {high:.4g}"
    lerobot = any(name.endswith(LEROBOT) for name in names)
    so_arm = any(part in name for name in names for part in SO_ARM)
    if most > MOST_TURNS_DEG:
        return Judged("", f"{span}: beyond two turns in degrees, such as steps of a motor; convert them")
    if most <= FULL_TURN:
        if so_arm:
            return Judged("", f"{span}: LeRobot has this arm in deg or percent, but it hardly moves", ("deg", PERCENT))
        return Judged("rad", f"{span}: no angle is beyond 2 pi")
    if lerobot and most <= HUNDRED:
        if most >= 100:
            return Judged(PERCENT, f"{span}, which ends at 100: LeRobot's -100 to 100 of a joint's range, no angle")
        why = f"{span}: degrees, or LeRobot's -100 to 100 of a joint's range; the robot's use_degrees tells"
        return Judged("", why, ("deg", PERCENT))
    named = "; SO-100 and SO-101 were recorded in degrees" if any(name.startswith(EARLIER) for name in names) else ""
    return Judged("deg", f"{span}: beyond 2 pi{named}")


def finger_unit(low: float, high: float) -> Judged:
    """Return the unit of the fingers of a hand from their smallest and largest number."""
    span = f"{low:.4g} to {high:.4g}"
    if low >= -0.1 and high <= 1.1:
        return Judged("", f"{span}: angles, or shares of a finger's way, which are trained as they are", ("rad",))
    return joint_unit((), low, high)


def gripper_unit(names: Sequence[str], low: float, high: float) -> Judged:
    """Return the unit of a gripper's opening. The arguments are those of :func:`joint_unit`."""
    span = f"{low:.4g} to {high:.4g}"
    lerobot = any(name.endswith(LEROBOT) or name.startswith(EARLIER) for name in names)
    if low >= -0.01 and high <= WIDEST_M and not lerobot:
        return Judged("m", f"{span}: an opening in m")
    if lerobot and low >= -20 and FULL_TURN < high <= 120:
        return Judged(PERCENT, f"{span}, and its name: LeRobot's 0 (shut) to 100 (open)")
    if low >= -0.1 and WIDEST_M < high <= 1.1:
        return Judged(FRACTION, f"{span}: 0 (shut) to 1 (open)")
    if low >= -1.1 and high <= FULL_TURN:
        return Judged("", f"{span}: an angle (kind: joints), -1 to 1, or percent that hardly open", (PERCENT,))
    if low >= -20 and high <= 300:
        return Judged("", f"{span}: percent of the opening, or mm", (PERCENT, "mm"))
    return Judged("", f"{span}: no unit of an opening; convert it")


def position_unit(low: float, high: float) -> Judged:
    """Return the unit of positions of a tool from their smallest and largest coordinate."""
    span = f"{low:.4g} to {high:.4g}"
    if max(abs(low), abs(high)) <= FARTHEST_M:
        return Judged("m", f"{span}: no place is beyond {FARTHEST_M:g} m")
    return Judged("", f"{span}: beyond {FARTHEST_M:g} m", ("mm", "cm"))
