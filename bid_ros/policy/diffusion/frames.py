"""Encodes camera frames, each of them once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.policy.runtimes.base import Graph

Images = tuple[NDArray[np.uint8], ...]


class FrameEncoder:
    """Turns the frames of an observation into points, and remembers those of the observation before.

    Consecutive observations overlap: all but the newest frames were in the one before. Frames are compared byte by
    byte, which takes microseconds, so remembering changes no result. One thread only.

    Args:
        graph: from one image per camera, uint8 ``(1, height, width, 3)``, to points float32 ``(1, P)``.
        cameras: names of the images.

    Attributes:
        runs: how often the graph ran.
    """

    def __init__(self, graph: Graph, cameras: Sequence[str]) -> None:
        self.graph, self.runs = graph, 0
        self._cameras = tuple(cameras)
        self._known: list[tuple[Images, NDArray[np.float32]]] = []

    def points(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return points ``(To, P)`` of images uint8 ``(To, height, width, 3)`` by camera."""
        seen: list[tuple[Images, NDArray[np.float32]]] = []
        for images in zip(*(values[name] for name in self._cameras), strict=True):
            seen.append((images, self._find(images, (*reversed(seen), *self._known))))
        # Copies: whoever made the images may write into them.
        self._known = [(tuple(image.copy() for image in images), points) for images, points in seen]
        return np.concatenate([points for _, points in seen])

    def _find(self, images: Images, known: Sequence[tuple[Images, NDArray[np.float32]]]) -> NDArray[np.float32]:
        for others, points in known:
            if all(map(np.array_equal, images, others)):
                return points
        self.runs += 1
        return self.graph.run({name: image[None] for name, image in zip(self._cameras, images, strict=True)})
