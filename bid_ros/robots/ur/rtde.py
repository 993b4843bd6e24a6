"""The frame of UR's Real-Time Data Exchange (RTDE), protocol version 2, as Universal Robots documents it.

A package is a big-endian ``uint16`` size (header included), a ``uint8`` type and a payload.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

HEADER: Final = struct.Struct(">HB")
PORT: Final = 30004
PROTOCOL_VERSION: Final = 2


class PackageError(ValueError):
    """The bytes are no RTDE packages; the message says what came and what is valid."""


class PackageType(IntEnum):
    """Types of RTDE packages: the ASCII code of a letter each."""

    REQUEST_PROTOCOL_VERSION = ord("V")
    GET_URCONTROL_VERSION = ord("v")
    TEXT_MESSAGE = ord("M")
    DATA_PACKAGE = ord("U")
    SETUP_OUTPUTS = ord("O")
    SETUP_INPUTS = ord("I")
    START = ord("S")
    PAUSE = ord("P")


def package(kind: PackageType, payload: bytes = b"") -> bytes:
    """Return ``payload`` with its header."""
    return HEADER.pack(HEADER.size + len(payload), kind) + payload


class PackageReader:
    """Cuts a stream of bytes into packages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[PackageType, bytes]]:
        """Yield type and payload of every package that ``data`` completes.

        Raises:
            PackageError: if a header cannot be one; the stream cannot be read on after that.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            size, kind = HEADER.unpack_from(self._buffer)
            if size < HEADER.size:
                raise PackageError(f"an RTDE package of size {size}; valid is {HEADER.size} or more")
            if kind not in _TYPES:
                raise PackageError(f"an RTDE package of type {kind}; valid are {', '.join(map(str, sorted(_TYPES)))}")
            if len(self._buffer) < size:
                return
            payload = bytes(self._buffer[HEADER.size : size])
            del self._buffer[:size]
            yield PackageType(kind), payload


_TYPES: Final = frozenset(int(kind) for kind in PackageType)
