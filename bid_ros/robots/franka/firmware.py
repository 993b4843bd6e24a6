"""Which version a Franka's server has."""

import socket
import struct
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig

PORT: Final = 1337
CONNECT: Final = struct.Struct("<3I2H")  # command, its number, size of the message; library version, UDP port
ANSWER: Final = struct.Struct("<3IBH")  # the same header; status, version of the server


def firmware(config: FrankaConfig) -> str:
    """Return the version of the robot's server, by which its maker tells the system images that fit a libfranka.

    A client of version 0 is refused with it, so nobody who drives the robot notices. Raises ArmError.
    """
    try:
        with socket.create_connection((config.address, PORT), config.connect_timeout_s) as link:
            link.sendall(CONNECT.pack(0, 1, CONNECT.size, 0, 0))
            *_, version = ANSWER.unpack(link.recv(ANSWER.size, socket.MSG_WAITALL))
    except (OSError, struct.error) as error:
        raise ArmError(f"robot at {config.address} does not say its version: {error}") from error
    return f"FCI server {version}"
