"""What gantry and client say to each other: fixed numbers over TCP, both ways, one answer to each request."""

from __future__ import annotations

import socket
import struct
from typing import Final

PORT: Final = 47100
SETPOINT: Final = struct.Struct("<4d")  # x, y, z in m, opening in m; NaN: stay where you are
STATE: Final = struct.Struct("<4d")  # the same, measured


def receive(connection: socket.socket, size: int) -> bytes:
    """Return exactly so many bytes; empty if the other side closed the connection."""
    data = b""
    while len(data) < size:
        if not (part := connection.recv(size - len(data))):
            return b""
        data += part
    return data
