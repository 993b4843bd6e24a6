"""Environment variables that keep the middleware from blocking a node that controls the arm.

Fast DDS is Jazzy's default. Inside one computer it uses shared memory. Whenever a process joins, every publisher opens
its port and checks that somebody listens there. The check waits 333 ms, sometimes seconds, even for a healthy listener
(Fast-DDS issue 6535). It waits inside ``publish``, with Python's lock held. So a thread that streams set-points in the
same process stands still for that long, and so does the arm. Over UDP the same start of eight processes blocks no
process for longer than 41 ms, on two busy cores.
"""

import os
from collections.abc import Mapping
from typing import Final

from bid_ros.core.paths import share

FAST_DDS: Final = "rmw_fastrtps_cpp"
PROFILES: Final = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")  # Fast DDS 2 and 3
RANGE: Final = "ROS_AUTOMATIC_DISCOVERY_RANGE"


def middleware_environment(twin: bool, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for a system. A twin never sends beyond this computer.

    Args:
        twin: whether the system runs in its twin.
        given: environment so far. Another middleware or profiles that it names are kept.
    """
    own = given.get("RMW_IMPLEMENTATION", FAST_DDS) != FAST_DDS or any(name in given for name in PROFILES)
    if own:
        return {RANGE: "LOCALHOST"} if twin else {}
    profiles = dict.fromkeys(PROFILES, str(share("config", f"fastdds_{'twin' if twin else 'robot'}.xml")))
    # LOCALHOST would make ROS add the shared memory again. The twin's profile sets the rest of what it means.
    return {RANGE: "SYSTEM_DEFAULT", **profiles} if twin else profiles
