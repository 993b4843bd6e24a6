"""Encodes camera frames, each of them once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.policy.runtimes.base import Graph

# The images of one instant, and their key points.
Frame = tuple[tuple[NDArray[np.uint8], ...], NDArray[np.float32]]


class FrameEncoder:
    """Turns the frames of an observation into key points, and remembers those of the observation before.

    Consecutive observations overlap: all but the newest frames were in the one before. Frames are compared byte by
    byte, which takes microseconds, so remembering changes no result. One thread only.

    Args:
        graph: from one image per camera, uint8 ``(1, height, width, 3)``, to key points float32 ``(1, P)``.
        cameras: names of the images.

    Attributes:
        runs: how often the graph ran.
    """

    def __init__(self, graph: Graph, cameras: Sequence[str]) -> None:
        self.graph, self.runs = graph, 0
        self._cameras = tuple(cameras)
        self._known: list[Frame] = []

    def points(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return key points ``(To, P)`` of images uint8 ``(To, height, width, 3)`` by camera."""
        frames: list[Frame] = []
        for images in zip(*(values[name] for name in self._cameras), strict=True):
            known = (*reversed(frames), *self._known)
            same = next((frame for frame in known if all(map(np.array_equal, images, frame[0]))), None)
            frames.append(same or self._encode(images))
        self._known = frames
        return np.concatenate([points for _, points in frames])

    def _encode(self, images: Sequence[NDArray[np.uint8]]) -> Frame:
        self.runs += 1
        points = self.graph.run({name: image[None] for name, image in zip(self._cameras, images, strict=True)})
        # Copies: whoever made the images may write into them.
        return tuple(image.copy() for image in images), points
