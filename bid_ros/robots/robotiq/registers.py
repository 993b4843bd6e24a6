"""What driver, twin and model of a Robotiq 2F-85 share: ranges, and the registers of its URCap's socket.

Source: Robotiq, "2F-85 and 2F-140 instruction manual", specifications: stroke 85 mm, grip force 20 to 235 N,
closing speed 20 to 150 mm/s.
"""

from typing import Final

PORT: Final = 63352
MAX_OPENING: Final = 0.085  # m between the pads
SPEED_RANGE: Final = (0.02, 0.15)  # m/s of the opening, at register 0 and 255
FORCE_RANGE: Final = (20.0, 235.0)  # N between pad and object, at register 0 and 255
# Position registers of the open and the closed gripper; a real one's differ a little.
OPEN_REGISTER: Final = 3
CLOSED_REGISTER: Final = 230
