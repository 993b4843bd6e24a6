"""What the controller moves: the seam to the arm, and an arm that is wherever it is told to be."""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import ArmError

Array = NDArray[np.float64]


class Plant(Protocol):
    """An arm that follows the controller's set-points, one cycle at a time.

    Joints run from base to wrist 3, in rad and s. One thread only.
    """

    @property
    def joint_positions(self) -> Array:
        """Actual joint angles ``(6,)`` rad."""

    @property
    def joint_velocities(self) -> Array:
        """Actual joint speeds ``(6,)`` rad/s."""

    @property
    def joint_torques(self) -> Array:
        """What the motors gave in the latest step, ``(6,)`` N m."""

    def step(self, target_q: Array, target_qd: Array, dt: float) -> None:
        """Pass one cycle of ``dt`` s, at whose end the arm should be at ``target_q`` with ``target_qd``, ``(6,)``."""

    def hold(self, dt: float) -> None:
        """Pass one cycle of ``dt`` s with the brakes on: the joints stay where they are, the world around goes on."""


class KinematicPlant:
    """An arm without mass: actual is target.

    Args:
        initial_q: ``(6,)`` rad.

    Attributes:
        joint_positions, joint_velocities: ``(6,)`` rad and rad/s.
        joint_torques: zeros ``(6,)``: nothing has weight.

    Raises:
        ArmError: if these are not six finite angles.
    """

    def __init__(self, initial_q: ArrayLike) -> None:
        self.joint_positions = finite_angles(initial_q)
        self.joint_velocities = np.zeros(6)
        self.joint_torques = np.zeros(6)

    def step(self, target_q: Array, target_qd: Array, dt: float) -> None:
        """Be at ``target_q`` ``(6,)`` rad with ``target_qd`` ``(6,)`` rad/s, whatever ``dt`` s is."""
        self.joint_positions = np.array(target_q, dtype=np.float64)
        self.joint_velocities = np.array(target_qd, dtype=np.float64)

    def hold(self, dt: float) -> None:
        """Stay where it is, at rest, for ``dt`` s."""
        self.joint_velocities = np.zeros(6)


def finite_angles(values: ArrayLike, count: int = 6) -> Array:
    """Return a copy ``(count,)`` of finite angles, rad; ArmError if they are something else."""
    angles = np.array(values, dtype=np.float64)
    if angles.shape != (count,) or not np.isfinite(angles).all():
        raise ArmError(f"the arm's initial angles are {angles.tolist()}; valid are {count} finite angles in rad")
    return angles
