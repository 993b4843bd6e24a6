"""The packages of UR's Real-Time Data Exchange (RTDE), protocol version 2, as Universal Robots documents it.

A package is a big-endian ``uint16`` size (header included), a ``uint8`` type and a payload.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from bid_ros.sim.ur.net import Misbehaviour

HEADER: Final = struct.Struct(">HB")
PROTOCOL_VERSION: Final = 2
# The guide's limit for the list of field names of one recipe.
MAX_NAMES: Final = 2048
# Type name -> struct format of one field, big-endian.
FORMATS: Final = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}
# Type name -> how many numbers one field holds.
COUNTS: Final = {name: int(text[:-1] or 1) for name, text in FORMATS.items()}


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


class MessageLevel(IntEnum):
    """Severity of a text message."""

    EXCEPTION = 0
    ERROR = 1
    WARNING = 2
    INFO = 3


def package(kind: PackageType, payload: bytes = b"") -> bytes:
    """Return ``payload`` with its header."""
    return HEADER.pack(HEADER.size + len(payload), kind) + payload


def text_message(text: str, source: str, level: MessageLevel) -> bytes:
    """Return a text message package; text and source are cut at 255 bytes."""
    parts = [part.encode()[:255] for part in (text, source)]
    payload = b"".join(bytes([len(part)]) + part for part in parts) + bytes([level])
    return package(PackageType.TEXT_MESSAGE, payload)


def field_names(payload: bytes) -> list[str]:
    """Return the names of a comma-separated list, of which the last comma is optional.

    Raises:
        Misbehaviour: if the list is empty, too long or not ASCII.
    """
    if not payload or len(payload) > MAX_NAMES:
        raise Misbehaviour(f"a recipe of {len(payload)} bytes of field names; valid are 1 to {MAX_NAMES}")
    if not payload.isascii():
        raise Misbehaviour("field names that are not ASCII")
    return [name.strip() for name in payload.decode().removesuffix(",").split(",")]


class PackageReader:
    """Cuts a stream of bytes into packages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[PackageType, bytes]]:
        """Yield type and payload of every package that ``data`` completes.

        Raises:
            Misbehaviour: if a header cannot be one; the stream cannot be read on after that.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            size, kind = HEADER.unpack_from(self._buffer)
            if size < HEADER.size:
                raise Misbehaviour(f"an RTDE package of size {size}; valid is {HEADER.size} or more")
            if kind not in _TYPES:
                raise Misbehaviour(f"an RTDE package of type {kind}; valid are {', '.join(map(str, sorted(_TYPES)))}")
            if len(self._buffer) < size:
                return
            payload = bytes(self._buffer[HEADER.size : size])
            del self._buffer[:size]
            yield PackageType(kind), payload


_TYPES: Final = frozenset(int(kind) for kind in PackageType)
