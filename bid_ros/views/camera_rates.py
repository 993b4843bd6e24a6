"""What the cameras of a recorded run delivered: rate, longest gap, and age of the images."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.percentiles import percentiles
from bid_ros.core.topics import IMAGE_TYPE
from bid_ros.recording.reader import BagReader


def camera_rates(bag: Path) -> dict[str, dict[str, Any]]:
    """Return by topic of raw or packed images: ``rate_hz``, ``gap_ms`` (the longest) and ``age_ms`` at the recorder.

    Raises:
        RecordingError: the bag cannot be read.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    with BagReader(bag) as reader:
        topics = [name for name, kind in reader.topics.items() if kind.replace("Compressed", "") == IMAGE_TYPE]
        for item in reader.raw(topics):
            if item.header_ns is not None:
                found.setdefault(item.topic, []).append((item.header_ns, item.stamp_ns))
    return {name: _rates(np.array(times)) for name, times in found.items() if len(times) > 1}


def _rates(times: NDArray[np.int64]) -> dict[str, Any]:
    """Return the figures of a camera from stamps and times of receipt ``(n, 2)`` ns."""
    gaps_ms = np.diff(times[:, 0]) / 1e6
    rate_hz = round(1e3 / float(gaps_ms.mean()), 2)
    return {"rate_hz": rate_hz, "gap_ms": float(gaps_ms.max()), "age_ms": percentiles(np.ptp(times, axis=1) / 1e6)}
