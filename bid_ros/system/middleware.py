"""Environment variables that keep the middleware on this computer, and from blocking a node that controls the arm.

Fast DDS is Jazzy's default. Inside one computer it uses shared memory. Whenever a process joins, every publisher opens
its port and checks that somebody listens there. The check waits 333 ms, sometimes seconds, even for a healthy listener
(Fast-DDS issue 6535). It waits inside ``publish``, with Python's lock held. So a thread that streams set-points in the
same process stands still for that long, and so does the arm. Over UDP the same start of eight processes blocks no
process for longer than 41 ms, on two busy cores.

Whoever reaches the graph may move the arm. So its sockets are those of 127.0.0.1, and with peers those of the addresses
towards them. A peer is asked by its address; nothing is found by multicast.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.files import replace_text
from bid_ros.core.paths import share

RMW: Final = "RMW_IMPLEMENTATION"
FAST_DDS: Final = "rmw_fastrtps_cpp"
PROFILES: Final = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")  # Fast DDS 2 and 3
RANGE: Final = "ROS_AUTOMATIC_DISCOVERY_RANGE"
LOCALHOST_ONLY: Final = "ROS_LOCALHOST_ONLY"
STATIC_PEERS: Final = "ROS_STATIC_PEERS"
LOCAL_PROFILE: Final = "fastdds_local.xml"
_OURS, _THEIRS = "</interfaceWhiteList>", "</initialPeersList>"  # ends of the profile's two lists
_ANY_PORT: Final = 9  # nothing is sent there


def middleware_environment(
    peers: Sequence[str] = (), folder: Path = Path(), given: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables for a system. Without peers, and with our profile, it never sends beyond this computer.

    Args:
        peers: host names or IPv4 addresses of other computers that take part.
        folder: takes the profile of a system with peers.
        given: environment so far. Another middleware or profiles that it names are kept. Then ROS's own variables say
            the same.

    Raises:
        BidError: a peer is unknown or cannot be reached.
    """
    if _own(given):
        return {RANGE: "LOCALHOST"} | ({STATIC_PEERS: ";".join(peers)} if peers else {})
    file = share("config", LOCAL_PROFILE)
    if peers:
        profile = named_profile(file.read_text(), peers)
        file = folder.resolve() / "fastdds.xml"
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(file, profile)
    # LOCALHOST would make ROS add the shared memory again. The profile sets the rest of what it means.
    # Every value of ROS_LOCALHOST_ONLY makes each node warn, so it is touched only where it is set.
    off = {LOCALHOST_ONLY: "0"} if given.get(LOCALHOST_ONLY) else {}
    return {RANGE: "SYSTEM_DEFAULT", **off, **dict.fromkeys(PROFILES, str(file))}


def named_profile(profile: str, peers: Sequence[str]) -> str:
    """Return a Fast DDS profile to which peers, and this computer's addresses towards them, are added.

    Raises:
        BidError: as :func:`middleware_environment`.
    """
    found = [_addresses(peer) for peer in peers]
    ours = "".join(f"<address>{address}</address>" for address in sorted({own for own, _ in found} - {"127.0.0.1"}))
    theirs = "".join(f"<locator><udpv4><address>{peer}</address></udpv4></locator>" for _, peer in found)
    return profile.replace(_OURS, f"{ours}{_OURS}").replace(_THEIRS, f"{theirs}{_THEIRS}")


def ignored_settings(given: Mapping[str, str] = os.environ) -> list[str]:
    """Return a sentence for each variable of ROS that the nodes of a system do not follow.

    And one for each that they do follow, though it takes away what keeps the graph on this computer.
    """
    if _own(given):
        open_ = "its sockets are not kept on this computer, so whoever reaches them may move the arm"
        kept = [name for name in (RMW, *PROFILES) if name in given and given[name] not in _ours()]
        return [f"{name}={given[name]} is kept: {open_}; valid is to unset it" for name in kept]
    said = "the nodes stay on this computer anyway, but for `peers`"
    why = {LOCALHOST_ONLY: said, STATIC_PEERS: "valid is the argument `peers`"}
    return [f"{name}={given[name]} is ignored: {why[name]}" for name in why if given.get(name)]


def _own(given: Mapping[str, str]) -> bool:
    """Whether an environment names another middleware, or profiles for this one that are not ours."""
    return any(given[name] not in _ours() for name in (RMW, *PROFILES) if name in given)


def _ours() -> tuple[str, str]:
    """Return the middleware and the profile that a system chooses by itself."""
    return FAST_DDS, str(share("config", LOCAL_PROFILE))


def _addresses(peer: str) -> tuple[str, str]:
    """Return this computer's address towards a peer, and the peer's."""
    try:
        theirs = socket.getaddrinfo(peer, _ANY_PORT, socket.AF_INET, socket.SOCK_DGRAM)[0][4][0]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect((theirs, _ANY_PORT))
            return str(asking.getsockname()[0]), str(theirs)
    except OSError as error:
        raise BidError(
            f"peers names '{peer}', which cannot be reached: {error.strerror or error}; "
            "valid are host names and IPv4 addresses of computers on this network"
        ) from None
