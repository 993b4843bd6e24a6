"""Whether the stamps of a camera's images are of this computer's clock."""

from typing import Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import foreign_stamp
from bid_ros.core.errors import CameraError

# Whoever stops for a clock that jumped needs a pause in the images: so long, ns.
PAUSE_NS: Final = NANOSECONDS
SHARE: Final = 1 / 16  # of a new delay in the usual one


class CameraClock:
    """Stamps the images of one camera by their arrival once its own clock proves wrong.

    Drivers that map a device's counter to this computer's clock can go wrong: that of RealSense jumps where the counter
    of 32 bits begins anew, after 4,295 s, and may be decades off. A clock that is wrong from the first image on is
    replaced at once. One that jumps later is replaced after a pause: so what moves with its images stops, with the
    reason. From the arrival the usual delay of the images is taken off, if it was seen before. If not, they seem
    newer than they are by that delay.

    Args:
        camera: name, for the sentence.

    Attributes:
        notice: what a person should know of the stamps; empty if they are the camera's own.
    """

    def __init__(self, camera: str) -> None:
        self._camera = camera
        self._was_right = False
        self._silent_until_ns = 0
        self._delay_ns = 0.0
        self.notice = ""

    def stamp_ns(self, stamp_ns: int, now_ns: int) -> int:
        """Return the stamp of an image, ns since 1970.

        Args:
            stamp_ns: what the camera says.
            now_ns: wall time of its arrival, ns since 1970.

        Raises:
            CameraError: the clock has jumped, now or a moment ago: the image is of no use.
        """
        if not self.notice:
            wrong = foreign_stamp(f"camera '{self._camera}': its images", stamp_ns, now_ns)
            if not wrong:
                self._delay_ns += (now_ns - stamp_ns - self._delay_ns) * (SHARE if self._was_right else 1.0)
                self._was_right = True
                return stamp_ns
            self.notice = f"{wrong.partition(': the clock')[0]}; they have the time of their arrival from now on"
            self._silent_until_ns = now_ns + PAUSE_NS * self._was_right
        # The clock of this computer may be set meanwhile: no pause is longer than PAUSE_NS.
        if 0 < self._silent_until_ns - now_ns <= PAUSE_NS:
            raise CameraError(f"{self.notice}: its clock has jumped")
        return now_ns - round(self._delay_ns)
