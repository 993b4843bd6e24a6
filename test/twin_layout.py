"""Places of the placing twin, written out by hand, against which tests hold what the package computes."""

HOME_TOOL = (0.45, 0.0, 0.32)  # m, base frame, with the joints at their home angles
# Tool height in m over the table at which to open: the object's end is 3 cm inside the cup, and the fingertips, 9 mm
# below the tool, are 29 mm above the rim.
RELEASE_TOOL_HEIGHT = 0.108
