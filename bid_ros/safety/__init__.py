"""Safety without ROS: whole chunks are judged, silence is noticed, a stop latches, one source commands at a time."""

from bid_ros.safety.arbiter import PRIORITY, Arbiter
from bid_ros.safety.envelope import Envelope, EnvelopeConfig
from bid_ros.safety.verdict import ACCEPTED, Verdict, refused
from bid_ros.safety.watchdog import State, Watchdog, WatchdogConfig

__all__ = [
    "ACCEPTED",
    "PRIORITY",
    "Arbiter",
    "Envelope",
    "EnvelopeConfig",
    "State",
    "Verdict",
    "Watchdog",
    "WatchdogConfig",
    "refused",
]
