"""Images go over the wire once. A question names those that its connection has already carried by their hash.

All but the newest images of an observation were in the one before. In a question of an own client, ``kept`` gives each
image feature a list with one entry a row: the hash of an image that the server has, or None for one that is sent. The
feature's array then has the rows that are sent, in order. It is left out if none are.

The server remembers the images of the last question of each connection, and hashes them itself. So a hash that it knows
stands for the same bytes. One that it does not know is answered with ``missing``, and the client sends all rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RemoteError
from bid_ros.core.feature import Feature

SIZE = 16  # bytes of a hash
Image = NDArray[Any]
Kept = dict[str, list[bytes | None]]


def image_hash(image: Image) -> bytes:
    """Return the hash of an image's bytes, row by row."""
    return hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=SIZE).digest()


class SentFrames:
    """What a client has sent over its connection.

    Args:
        names: of the image features.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._there: dict[str, set[bytes]] = {}
        self._asked: dict[str, set[bytes]] = {}

    def forget(self) -> None:
        """Send everything next, as over a new connection."""
        self._there = {}

    def spared(self, values: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], Kept]:
        """Return the features ``(To, *shape)`` as they are sent, and ``kept``."""
        content, kept = dict(values), Kept()
        self._asked = {}
        for name in self._names:
            hashes = [image_hash(image) for image in values[name]]
            known, entries = set(self._there.get(name, ())), list[bytes | None]()
            for item in hashes:
                entries.append(item if item in known else None)
                known.add(item)
            sent = values[name][[item is None for item in entries]]
            if len(sent):
                content[name] = sent
            else:
                del content[name]
            kept[name], self._asked[name] = entries, set(hashes)
        return content, kept

    def arrived(self) -> None:
        """Count what was asked last as known: the server has answered it."""
        self._there = self._asked


class KeptFrames:
    """The images of the last question of one connection, on the server."""

    def __init__(self) -> None:
        self._known: dict[str, dict[bytes, Image]] = {}

    def whole(
        self, content: Mapping[str, Any], kept: Any, images: Sequence[Feature], steps: int
    ) -> dict[str, NDArray[Any]] | None:
        """Return the images ``(steps, *shape)`` by feature of a question. None: one of them is not known.

        Args:
            content: the question.
            kept: what it says under ``kept``.
            images: features of the task.
            steps: To.

        Raises:
            RemoteError: ``kept``, or the rows that were sent, are not valid.
        """
        features = {item.name: item for item in images}
        if not isinstance(kept, dict) or set(kept) != set(features):
            raise RemoteError(f"kept is not valid; valid is a map with {', '.join(features) or 'nothing'}")
        found: dict[str, dict[bytes, Image]] = {}
        rows: dict[str, list[Image]] = {}
        for name, entries in kept.items():
            sent = iter(_sent(features[name], content.get(name), entries, steps))
            found[name], rows[name] = {}, []
            for entry in entries:
                image = next(sent) if entry is None else found[name].get(entry, self._known.get(name, {}).get(entry))
                if image is None:
                    return None
                found[name][image_hash(image) if entry is None else entry] = image
                rows[name].append(image)
        self._known = found
        return {name: np.stack(images) for name, images in rows.items()}


def _sent(feature: Feature, value: Any, entries: Any, steps: int) -> Sequence[Image]:
    """Return the rows that were sent of a feature."""
    name = feature.name
    good = isinstance(entries, list) and len(entries) == steps
    if not good or not all(item is None or (isinstance(item, bytes) and len(item) == SIZE) for item in entries):
        raise RemoteError(f"kept of '{name}' is not valid; valid are {steps} entries, each None or {SIZE} bytes")
    whole = entries.count(None), *feature.shape
    if value is None and not whole[0]:
        return []
    if not isinstance(value, np.ndarray) or value.shape != whole or value.dtype != feature.dtype:
        what = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else "missing or no array"
        raise RemoteError(f"the rows of '{name}' that are sent are {what}; valid is {feature.dtype} {whole}")
    return list(value)
