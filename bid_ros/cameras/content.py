"""What is wrong with the images of a camera, by their content: one colour, frozen, too few."""

from collections import deque
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS

Image = NDArray[Any]

# Rows and columns that are looked at: so an image of any size takes some tens of microseconds.
SAMPLED: Final = 32
# Share of the pixels, at each end, that may be dust, a lamp or a broken pixel.
OUTLIERS: Final = 0.02
# Of 255. A covered lens gives the black level of its sensor with its noise; light that is too strong is cut off at 255.
BLACK: Final = 16
WHITE: Final = 240
FLAT: Final = 8
# So many equal images in a row, over at least so long, s, are a frozen sensor.
EQUAL: Final = 3
EQUAL_S: Final = 0.25
# A rate is taken over so many images, and valid from this share of what is wanted on.
RATED: Final = 6
LEAST_RATE: Final = 2 / 3


class FrameWatch:
    """Looks at each image of one camera.

    An image of one colour is never of use, whatever the camera is. Equal images are a frozen sensor only where there is
    a sensor: its noise makes two images of one scene differ. A simulation renders a scene that stands still alike each
    time. Of such images the policy node says that they are frozen, once the arm has moved meanwhile.

    Args:
        camera: name, for the sentence.
        sensor: its images come from a sensor.
        rate_hz: images a second that are wanted.
    """

    def __init__(self, camera: str, sensor: bool, rate_hz: float) -> None:
        self._camera, self._sensor, self._rate_hz = camera, sensor, rate_hz
        self._sample: Image | None = None
        self._equal, self._since_ns = 1, 0
        self._arrived: deque[int] = deque(maxlen=RATED)

    def look(self, image: Image, now_ns: int) -> str:
        """Return why an image ``(height, width, 3)`` is of no use; empty if it may be of use.

        Args:
            image: as delivered by the camera; or distances ``(height, width, 1)`` in mm.
            now_ns: steady time at which it arrived, ns.
        """
        self._arrived.append(now_ns)
        sample = sampled(image)
        return self._colour(sample) or self._frozen(sample, now_ns)

    def rate_problem(self) -> str:
        """Return one sentence if the last images came too seldom; empty if they did not."""
        if len(self._arrived) < RATED or self._arrived[-1] == self._arrived[0]:
            return ""
        rate_hz = (RATED - 1) * NANOSECONDS / (self._arrived[-1] - self._arrived[0])
        least_hz = LEAST_RATE * self._rate_hz
        if rate_hz >= least_hz:
            return ""
        valid = f"valid is {least_hz:.1f} or more, for the {self._rate_hz:g} that are wanted"
        return f"camera '{self._camera}' delivers {rate_hz:.1f} images a second; {valid}"

    def _colour(self, sample: Image) -> str:
        pixels = sample.reshape(-1, sample.shape[2])
        least = int(OUTLIERS * len(pixels))
        if sample.shape[2] == 1:
            measured = int(np.count_nonzero(pixels))
            return "" if measured > least else f"camera '{self._camera}' measures no distance: look what covers it"
        ends = np.partition(pixels, (least, len(pixels) - 1 - least), axis=0)
        low, high = ends[least], ends[len(pixels) - 1 - least]
        what = f"camera '{self._camera}' shows nothing: its image is"
        if high.max() < BLACK:
            return f"{what} black (at most {high.max()} of 255; valid is {BLACK} or more): look what covers its lens"
        if low.min() > WHITE:
            return f"{what} white (at least {low.min()} of 255; valid is {WHITE} or less): look at light and exposure"
        spread = int((high - low).max())
        if spread < FLAT:
            return f"{what} of one colour (within {spread} of 255; valid is {FLAT} or more): look what covers its lens"
        return ""

    def _frozen(self, sample: Image, now_ns: int) -> str:
        if not self._sensor:
            return ""
        before, self._sample = self._sample, sample
        if before is None or not np.array_equal(before, sample):
            self._equal, self._since_ns = 1, now_ns
            return ""
        self._equal += 1
        frozen_s = (now_ns - self._since_ns) / NANOSECONDS
        if self._equal < EQUAL or frozen_s < EQUAL_S:
            return ""
        why = "a sensor has noise, so no two images are equal"
        return f"camera '{self._camera}' is frozen: {self._equal} equal images in {frozen_s:.1f} s; {why}"


def sampled(image: Image) -> Image:
    """Return a copy of some pixels of an image, in a regular grid over all of it."""
    down, across = (max(1, size // SAMPLED) for size in image.shape[:2])
    return image[::down, ::across].copy()
