"""Dimensions of the picking task in the twin, in metres, shared by physics, rendering, scoring and demonstrations.

The robot base stands at the origin, its frame is the controller's base frame, and the table's top is z = 0. The arm
reaches along +x.
"""

from typing import Final

CUP_RADIUS: Final = 0.030  # outer; 12.5 mm of room on either side between the open fingers
CUP_HEIGHT: Final = 0.075
CUP_MASS: Final = 0.120  # kg
CUP_STRING_HEIGHT: Final = 0.008  # of the string over the table: a pull at the foot does not tip the cup

SAUCER_RADIUS: Final = 0.065
SAUCER_HEIGHT: Final = 0.008
SAUCER_WELL: Final = 0.036  # radius of the tinted middle, a little more than the cup's foot

CUP_X: Final = (0.40, 0.58)  # range of the cup's axis until it is grasped, base frame
CUP_Y: Final = (-0.20, 0.04)
SAUCER_X: Final = (0.44, 0.54)  # range of the saucer's middle, clear of every cup
SAUCER_Y: Final = (0.17, 0.23)

GRASP_BELOW_RIM: Final = 0.030  # the tool's frame, the middle of the pads, is this far below the rim of a held cup
GRASP_TOOL_HEIGHT: Final = CUP_HEIGHT - GRASP_BELOW_RIM
FINGERTIP_BELOW_TOOL: Final = 0.018
# Height in m of the tool at which the fingertips are level with the rim of a cup on the table, base frame.
RIM_Z: Final = CUP_HEIGHT + FINGERTIP_BELOW_TOOL
