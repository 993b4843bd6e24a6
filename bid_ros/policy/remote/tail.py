"""A frame behind each message, so that the loss of the message's last packet is noticed soon.

The receiver of TCP reports a gap as soon as a later packet arrives. So a lost packet costs about one round trip. Behind
the last packet nothing comes: Linux then waits for two round trips and 200 ms more, longer than a decision's period.
An empty pong frame, in a packet of its own, is what comes behind. Every end of a websocket may send one unasked and
ignores those that come.

Sources: Cheng et al., "The RACK-TLP Loss Detection Algorithm for TCP", RFC 8985, Sections 6.2 and 7.2 (the wait is
longer while one packet is in flight); Fette & Melnikov, "The WebSocket Protocol", RFC 6455, Section 5.5.3 (unasked
pongs).
"""

import array
import asyncio
import fcntl
import time
from contextlib import suppress
from typing import Any, Final

SIOCOUTQNSD: Final = 0x894B  # Linux: bytes in the queue of a socket that were not sent yet
PAUSE_S: Final = 0.001
MOST_S: Final = 0.1  # that a server waits for its answer to be sent


def unsent(connection: Any) -> int:
    """Return how many bytes of a TCP socket its kernel has not sent yet; 0 where the kernel does not tell."""
    number = array.array("i", [0])
    with suppress(OSError, ValueError):  # ValueError: it is closed
        fcntl.ioctl(connection.fileno(), SIOCOUTQNSD, number)
    return number[0]


def follow(connection: Any, end: float) -> None:
    """Send a pong behind what a client has sent.

    What is unsent when it is given to the kernel would share a packet with it. So it waits for the rest to be sent.

    Args:
        connection: of ``websockets.sync``.
        end: of the wait, s of the steady clock.
    """
    from websockets.exceptions import ConnectionClosed

    while unsent(connection.socket) and time.monotonic() < end:
        time.sleep(PAUSE_S)
    with suppress(ConnectionClosed):  # the answer may have come before
        connection.pong()


async def follow_later(connection: Any) -> None:
    """Send a pong behind what a server has sent, as :func:`follow` does; ``connection`` of ``websockets.asyncio``."""
    from websockets.exceptions import ConnectionClosed

    plain, end = connection.transport.get_extra_info("socket"), time.monotonic() + MOST_S
    while (connection.transport.get_write_buffer_size() or unsent(plain)) and time.monotonic() < end:
        await asyncio.sleep(PAUSE_S)
    with suppress(ConnectionClosed):
        await connection.pong()
