"""Finds values of exposure, gain and white balance that keep the image as a camera's automatics made it."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.base import AdjustableCamera, LightControl, LockedLight
from bid_ros.core.errors import CameraError

Array = NDArray[np.float64]

SETTLE_S: Final = 3.0  # that automatics get
CHANGE_S: Final = 0.5  # after which a changed value shows in the images; drivers have frames in waiting
IMAGES: Final = 3  # that are averaged
SILENT_S: Final = 5.0
TRIES: Final = 9  # of one control; each halves what is left of its range
CLOSE: Final = 0.03  # of the logarithm of brightness, and of red to blue: nobody sees 3 %
FAR: Final = 0.15  # above this nothing is locked


def lock_light(camera: AdjustableCamera, clock: Callable[[], float] = time.monotonic) -> LockedLight:
    """Let an open camera settle, hold its light as it is then, and return the values.

    Some devices, the colour sensor of a RealSense among them, do not say what their automatics have chosen. So the
    values that they report are only tried first. If the image changes by them, exposure and white balance are searched
    for until brightness and colour are as before. Gain stays as reported.

    Args:
        camera: open. What it sees must not change meanwhile.
        clock: steady time in s.

    Raises:
        CameraError: it has no such control, refuses a value, falls silent, or no value gives the image that it had.
    """
    controls = camera.controls()
    if not controls:
        raise CameraError("the camera has neither exposure nor gain nor white balance; valid is one that has")
    camera.automatic()
    wanted = _look(camera, SETTLE_S, clock)
    values = {name: control.now for name, control in camera.controls().items()}
    camera.hold(values)
    found = _look(camera, CHANGE_S, clock)
    for name, measure in (("exposure", _brightness), ("white_balance", _warmth)):
        if name in controls and abs(measure(found) - measure(wanted)) > CLOSE:
            found = _search(camera, controls[name], values, name, partial(_apart, measure, wanted), clock)
    off = abs(_brightness(found) - _brightness(wanted))
    if off > FAR:
        raise CameraError(
            f"the image is {100 * math.expm1(off):.0f} % off in brightness once the light is held; "
            "valid is a scene that does not change, with light that exposure can follow"
        )
    return LockedLight(camera.serial(), **values)


def _apart(measure: Callable[[Array], float], wanted: Array, seen: Array) -> float:
    return measure(seen) - measure(wanted)


def _search(
    camera: AdjustableCamera,
    control: LightControl,
    values: dict[str, float],
    name: str,
    error: Callable[[Array], float],
    clock: Callable[[], float],
) -> Array:
    """Halve the range of a control until the error, which rises with it, is close to 0; return what is seen then."""
    low, high = max(control.low, 1.0), max(control.high, 1.0)
    best = math.inf, values[name], np.zeros(3)
    for _ in range(TRIES):
        middle = round(math.sqrt(low * high))  # light doubles with the time
        camera.hold({**values, name: middle})
        seen = _look(camera, CHANGE_S, clock)
        off = error(seen)
        best = min(best, (abs(off), float(middle), seen), key=lambda found: found[0])
        if abs(off) < CLOSE or high - low <= 1:
            break
        low, high = (low, float(middle)) if off > 0 else (float(middle), high)
    values[name] = best[1]
    camera.hold(values)
    return best[2]


def _look(camera: AdjustableCamera, after_s: float, clock: Callable[[], float]) -> Array:
    """Return the mean colour ``(3,)`` of the images that come after ``after_s``."""
    begun, seen = clock(), list[Array]()
    while len(seen) < IMAGES:
        frame = camera.read()
        if clock() - begun > after_s + SILENT_S:
            raise CameraError(
                f"the camera delivers fewer than {IMAGES} images in {SILENT_S:g} s; valid is one that runs"
            )
        if frame is not None and clock() - begun >= after_s:
            seen.append(frame.image.reshape(-1, 3).mean(axis=0))
    return np.asarray(np.mean(seen, axis=0), dtype=np.float64)


def _brightness(colour: Array) -> float:
    return math.log(max(float(colour.mean()), 1.0))


def _warmth(colour: Array) -> float:
    return math.log(max(float(colour[0]), 1.0) / max(float(colour[2]), 1.0))
