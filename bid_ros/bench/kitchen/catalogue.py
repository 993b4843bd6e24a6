"""What can be done in the kitchen, and when it counts as done: the goals of the published environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

KITCHEN: Final = "kitchen"
"""The name of the bench."""
ARM, OBJECTS = 9, 21
"""Positions of the arm with its two fingers, and of what is in the kitchen: rad, m and a quaternion."""
NEAR: Final = 0.3  # from a goal's values, in their units together; as published


@dataclass(frozen=True)
class KitchenGoal:
    """One thing to do.

    Attributes:
        name: as published.
        at: indices of its values among those of the kitchen.
        values: that they should have.
    """

    name: str
    at: Sequence[int]
    values: Sequence[float]

    def done(self, objects: ArrayLike) -> bool:
        """Return whether the kitchen's positions ``(21,)`` are near this goal."""
        missing = np.asarray(objects, dtype=np.float64)[list(self.at)] - np.asarray(self.values)
        return bool(np.linalg.norm(missing) < NEAR)


GOALS: Final = {
    goal.name: goal
    for goal in (
        KitchenGoal("bottom burner", (2, 3), (-0.88, -0.01)),
        KitchenGoal("top burner", (6, 7), (-0.92, -0.01)),
        KitchenGoal("light switch", (8, 9), (-0.69, -0.05)),
        KitchenGoal("slide cabinet", (10,), (0.37,)),
        KitchenGoal("hinge cabinet", (11, 12), (0.0, 1.45)),
        KitchenGoal("microwave", (13,), (-0.75,)),
        KitchenGoal("kettle", tuple(range(14, 21)), (-0.23, 0.75, 1.62, 0.99, 0.0, 0.0, -0.06)),
    )
}
EPISODE_GOALS: Final = 4  # that an episode counts, and that each demonstration of the public data does
