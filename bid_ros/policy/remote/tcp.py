"""How both ends use their TCP connection on a link that loses packets.

TCP's usual congestion control, cubic, takes a lost packet for a full link and then sends few packets at once. BBR
measures the link instead. Linux offers it to everybody where ``tcp_bbr`` is loaded and allowed.

The receiver reports a gap when a later packet arrives. Behind the last packet of a message nothing comes, and Linux
waits for more than 200 ms before it sends that one again. So both ends send empty pongs behind each message. Every end
of a websocket ignores those that come unasked.

Sources: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016; Cheng et al., "The RACK-TLP
Loss Detection Algorithm for TCP", RFC 8985; Fette & Melnikov, "The WebSocket Protocol", RFC 6455, Section 5.5.3.
"""

import socket
from contextlib import suppress
from typing import Any, Final

WANTED: Final = "bbr"
PONG_S, PONGS = 0.01, 4  # between two pongs; number of pongs behind an answer
NAME_BYTES: Final = 16  # of a congestion control, TCP_CA_NAME_MAX of Linux


def tune(plain: Any) -> str:
    """Set up a connected TCP socket; return its congestion control, such as ``bbr``, empty if the system names none."""
    with suppress(OSError):  # it has ended already
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    option = getattr(socket, "TCP_CONGESTION", None)  # Linux and FreeBSD have it
    if option is None:
        return ""
    with suppress(OSError):  # not there, or not allowed: the system's own stays
        plain.setsockopt(socket.IPPROTO_TCP, option, WANTED.encode())
    with suppress(OSError):
        name: bytes = plain.getsockopt(socket.IPPROTO_TCP, option, NAME_BYTES)
        return name.split(b"\0")[0].decode()
    return ""
