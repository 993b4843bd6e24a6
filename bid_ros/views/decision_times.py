"""How long a decision took, from its message."""

from typing import Any, Final

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
