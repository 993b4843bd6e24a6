"""Environment variables that keep the middleware from holding up a node that is in control.

Fast DDS, Jazzy's default, talks through shared memory inside one computer. Whenever a process joins, every publisher
opens its port and checks that somebody listens there. The check waits 333 ms, sometimes seconds, even for a healthy
listener (Fast-DDS issue 6535), and it does so inside ``publish``, which holds Python's lock: a process that only
streams set-points beside its node stands still for that long, and so does the arm. Over UDP the same start of eight
processes holds nobody up for longer than 41 ms, on two busy cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from bid_ros.paths import share

FAST_DDS: Final = "rmw_fastrtps_cpp"
PROFILES: Final = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")  # Fast DDS 2 and 3
RANGE: Final = "ROS_AUTOMATIC_DISCOVERY_RANGE"


def middleware_environment(twin: bool, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for a system; a twin never talks beyond this computer.

    Args:
        twin: whether it is one.
        given: the environment so far. Who chose another middleware or wrote profiles of their own keeps them.
    """
    own = given.get("RMW_IMPLEMENTATION", FAST_DDS) != FAST_DDS or any(name in given for name in PROFILES)
    if own:
        return {RANGE: "LOCALHOST"} if twin else {}
    profiles = dict.fromkeys(PROFILES, str(share("config", f"fastdds_{'twin' if twin else 'robot'}.xml")))
    # With LOCALHOST, ROS would add the shared memory again; the twin's profile says the rest of what it means.
    return {RANGE: "SYSTEM_DEFAULT", **profiles} if twin else profiles
