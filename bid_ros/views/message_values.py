"""What messages say: constants by their names, and the times of a decision."""

from typing import Any, Final

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


FIELDS: Final = {
    "decision_ms": "decision_time",
    "observation_age_ms": "observation_age",
    "encode_ms": "encode_time",
    "sample_ms": "sample_time",
    "choose_ms": "choose_time",
}
"""Field of bid_msgs/Decision in s by the name that is shown. In bags of an earlier version this is the field, in ms."""
LATENCIES: Final = tuple(FIELDS)


def decision_times_ms(decision: Any) -> dict[str, float]:
    """Return the times of a decision in ms by the names in :data:`LATENCIES`.

    Args:
        decision: the message of any version, of rclpy or read from a bag.
    """
    older = not hasattr(decision, FIELDS["decision_ms"])
    return {
        shown: float(getattr(decision, shown)) if older else 1e3 * float(getattr(decision, field))
        for shown, field in FIELDS.items()
    }
