"""Dimensions of the placing task in the twin, in metres, shared by physics, rendering, scoring and demonstrations.

The robot base stands at the origin and the table's top is z = 0.
"""

from typing import Final

OBJECT_DIAMETER: Final = 0.040
OBJECT_RADIUS: Final = OBJECT_DIAMETER / 2
OBJECT_LENGTH: Final = 0.080
OBJECT_MASS: Final = 0.050  # kg
GRASP_BELOW_TOP: Final = 0.012  # the tool's frame is this far below the top of the held object
OBJECT_BOTTOM_BELOW_TOOL: Final = OBJECT_LENGTH - GRASP_BELOW_TOP

CUP_HEIGHT: Final = 0.070
CUP_RIM_RADIUS: Final = 0.030  # inner
CUP_BOTTOM_RADIUS: Final = 0.023  # inner
CUP_WALL: Final = 0.003
CUP_SIDES: Final = 12

CUP_X: Final = (0.45, 0.60)  # range of the cup's axis in every episode, base frame
CUP_Y: Final = (-0.12, 0.12)
# Height in m of the tool at which the end of the held object is level with the rim, base frame.
RIM_Z: Final = CUP_HEIGHT + OBJECT_BOTTOM_BELOW_TOOL


def cup_inner_radius(height: float) -> float:
    """Inner radius of the cup in m at ``height`` m above its foot, clipped to the cup."""
    share = min(max(height / CUP_HEIGHT, 0.0), 1.0)
    return CUP_BOTTOM_RADIUS + share * (CUP_RIM_RADIUS - CUP_BOTTOM_RADIUS)
