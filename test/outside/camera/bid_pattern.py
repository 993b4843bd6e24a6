"""A camera: vertical stripes that move, ten pictures a second. Its address is the size, such as ``128x96``."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np

from bid_ros.cameras.base import CameraDescriptor, Frame
from bid_ros.core.errors import CameraError

PERIOD_NS = 100_000_000


class PatternCamera:
    """Takes a picture at every multiple of 100 ms of wall time, as the cameras of the twin do."""

    def __init__(self, width: int, height: int) -> None:
        self._columns, self._height = np.arange(width), height

    def open(self) -> None:
        """Open the device; raise CameraError if it is missing or busy."""

    def read(self) -> Frame | None:
        """Wait for the next picture, half a second at most."""
        due_ns = (time.time_ns() // PERIOD_NS + 1) * PERIOD_NS
        time.sleep((due_ns - time.time_ns()) / 1e9)
        stripes = np.where((self._columns + due_ns // PERIOD_NS) % 16 < 8, 230, 40).astype(np.uint8)
        return Frame(due_ns, np.broadcast_to(stripes[None, :, None], (self._height, stripes.size, 3)))

    def close(self) -> None:
        """Release the device."""


def _build(address: str, folder: Path) -> PatternCamera:
    size = re.fullmatch(r"(\d+)x(\d+)", address)
    if size is None:
        raise CameraError(f"pattern camera has address '{address}'; valid is WIDTHxHEIGHT, such as 128x96")
    return PatternCamera(int(size[1]), int(size[2]))


CAMERA = CameraDescriptor("pattern", _build)
