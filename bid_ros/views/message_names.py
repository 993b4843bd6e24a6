"""The names of the numbers in messages, in the order of the constants of their types."""

from typing import Final

SAFETY: Final = ("RUNNING", "STOPPED", "WAITING")  # of bid_msgs/SafetyState
MODES: Final = ("HOLDING", "TRACKING", "STOPPING", "STOPPED", "FAULT")  # of bid_msgs/ArmStatus
EVENTS: Final = ("PREPARE", "START", "END")  # of bid_msgs/EpisodeEvent
LEVELS: Final = ("OK", "WARN", "ERROR", "STALE")  # of diagnostic_msgs/DiagnosticStatus


def word(words: tuple[str, ...], number: int) -> str:
    """Return the name of a number; the number itself if it has none, as of a later version."""
    return words[number] if 0 <= number < len(words) else str(number)


def state(name: str, reason: str) -> str:
    """Return a state in words, with its reason if there is one."""
    return f"{name}: {reason}" if reason else name
