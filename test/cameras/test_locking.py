"""The light of a camera is held as its automatics made it, also where the camera does not tell their values."""

import math

import numpy as np
import pytest

from bid_ros.cameras.base import AdjustableCamera, Frame, LightControl
from bid_ros.cameras.locking import lock_light
from bid_ros.core.errors import CameraError

RANGES = {"exposure": (1, 10000), "gain": (0, 128), "white_balance": (2800, 6500)}
GOOD = {"exposure": 420.0, "gain": 64.0, "white_balance": 5200.0}


class Sensor:
    """A sensor with automatics that settle at GOOD, whose values it tells or, as RealSense's colour, does not."""

    def __init__(self, tells: bool, scene=lambda seconds: 1.0, names=tuple(RANGES)):
        self._tells, self._scene, self._names = tells, scene, names
        self._values: dict[str, float] | None = None
        self.seconds, self.held = 0.0, 0

    def open(self): ...

    def close(self): ...

    def ask(self, capture): ...

    def serial(self):
        return "77"

    def clock(self):
        return self.seconds

    def controls(self):
        now = {"exposure": 166.0, "gain": 64.0, "white_balance": 4600.0} if not self._tells else GOOD
        return {name: LightControl((self._values or now)[name], *RANGES[name]) for name in self._names}

    def automatic(self):
        self._values = None

    def hold(self, values):
        self._values, self.held = {**GOOD, **values}, self.held + 1

    def read(self):
        self.seconds += 1 / 30
        values = self._values or GOOD
        level = 255 * (1 - math.exp(-values["exposure"] * self._scene(self.seconds) / 600))
        warm = values["white_balance"] / GOOD["white_balance"]
        colour = np.clip([level * warm**0.5, level, level / warm**0.5], 0, 255)
        return Frame(0, np.broadcast_to(np.round(colour), (6, 8, 3)).astype(np.uint8))


def test_values_that_a_camera_tells_are_held_as_they_are():
    sensor = Sensor(tells=True)
    assert isinstance(sensor, AdjustableCamera)
    locked = lock_light(sensor, sensor.clock)
    assert (locked.serial, locked.exposure, locked.gain, locked.white_balance) == ("77", 420, 64, 5200)
    assert sensor.held == 1


def test_values_that_a_camera_does_not_tell_are_found_by_its_images():
    sensor = Sensor(tells=False)
    automatic = sensor.read().image[0, 0].astype(float)
    locked = lock_light(sensor, sensor.clock)
    assert abs(locked.exposure / 420 - 1) < 0.05 and abs(locked.white_balance - 5200) < 200 and locked.gain == 64
    np.testing.assert_allclose(sensor.read().image[0, 0], automatic, rtol=0.05)


def test_a_camera_with_exposure_alone_is_locked_by_it():
    sensor = Sensor(tells=False, names=("exposure",))
    locked = lock_light(sensor, sensor.clock)
    assert abs(locked.exposure / 420 - 1) < 0.05 and locked.gain is None and locked.white_balance is None


@pytest.mark.parametrize(
    ("sensor", "words"),
    [
        (Sensor(tells=True, names=()), "has neither exposure nor gain nor white balance"),
        (Sensor(tells=False, scene=lambda s: 1.0 if s < 3.3 else 1e-4), "off in brightness once the light is held"),
    ],
)
def test_what_cannot_be_locked_is_said(sensor, words):
    with pytest.raises(CameraError, match=words):
        lock_light(sensor, sensor.clock)
