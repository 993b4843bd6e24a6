"""What the twin writes into RTDE packages (:mod:`bid_ros.robots.ur.rtde`) and reads from them: types, texts, names."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from bid_ros.robots.ur.rtde import PackageType, package
from bid_ros.robots.ur.twin.net import Misbehaviour

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


class MessageLevel(IntEnum):
    """Severity of a text message."""

    EXCEPTION = 0
    ERROR = 1
    WARNING = 2
    INFO = 3


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
