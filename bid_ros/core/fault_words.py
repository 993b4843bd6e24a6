"""Words in the sentence of a fault that say which part failed: who writes the sentence and who reads it share them."""

from typing import Final

CLOCK_GAINED: Final = "its clock gained"
"""A robot's clock runs away from this computer's."""
NO_SETPOINT: Final = "no set-point for"
"""This computer sent nothing while the arm moved."""
DRIVER: Final = "the process that drives the robot"
"""The process of this computer that owns the robot's connection hangs, or has ended."""
BUSY: Final = "keeps this computer busy"
"""What to look for when a twin, which shares this computer, is late."""
COMMANDS_LOST: Final = "communication_constraints_violation"
"""libfranka's name of the reflex after too many lost commands."""
LINK: Final = (
    "has been silent for",
    "no answer from the robot",
    "is heard",
    "hears us",
    "closed the connection",
    "is lost to",
    "of the last 100 commands",
)
"""A robot is silent, late or gone. Of a twin, whose link is this computer, that tells of the computer."""
