"""Safety without ROS: checks of whole chunks, heartbeat deadlines, grants, the latched stop, one source at a time."""

from bid_ros.safety.arbiter import PRIORITY, Arbiter
from bid_ros.safety.envelope import ACCEPTED, Envelope, EnvelopeConfig, Verdict, refused
from bid_ros.safety.grants import Grants, Lapse
from bid_ros.safety.watchdog import State, Watchdog, WatchdogConfig

__all__ = [
    "ACCEPTED",
    "PRIORITY",
    "Arbiter",
    "Envelope",
    "EnvelopeConfig",
    "Grants",
    "Lapse",
    "State",
    "Verdict",
    "Watchdog",
    "WatchdogConfig",
    "refused",
]
