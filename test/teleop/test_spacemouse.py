"""A SpaceMouse by its reports, through the parser of pyspacemouse. Bytes as a SpaceMouse Compact sends them."""

import struct

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.teleop.spacemouse import SpaceMouse, SpaceMouseSettings

pytest.importorskip("pyspacemouse.device", reason="pyspacemouse or libhidapi is not installed", exc_type=Exception)
from pyspacemouse import AxisConvention
from pyspacemouse.config_helpers import apply_axis_convention
from pyspacemouse.device import SpaceMouseDevice
from pyspacemouse.loader import get_device_specs

SECOND = 1_000_000_000


def pushed(*values: int) -> bytes:
    """Report of the translation: x right, y towards the person, z down, each -350 to 350."""
    return bytes([1]) + struct.pack("<hhh", *values)


def turned(*values: int) -> bytes:
    return bytes([2]) + struct.pack("<hhh", *values)


def pressed(buttons: int) -> bytes:
    return bytes([3, buttons, 0])


class Reports:
    """The HID device of this test: gives recorded reports, one a read."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        self.gone = False

    def read(self, _: int) -> bytes:
        if self.gone:
            raise OSError("read error")
        return self.waiting.pop(0) if self.waiting else b""

    def close(self) -> None:
        self.gone = True


@pytest.fixture
def mouse():
    reports = Reports()
    spec = apply_axis_convention(get_device_specs()["SpaceMouseCompact"], AxisConvention.ROS)
    return SpaceMouse(SpaceMouseSettings(deadzone=0.1), SpaceMouseDevice(spec, reports)), reports


@pytest.mark.parametrize(
    ("report", "column", "sign"),
    [
        (pushed(0, -350, 0), 0, 1),  # away from the person: forward
        (pushed(-350, 0, 0), 1, 1),  # to the left
        (pushed(0, 0, -350), 2, 1),  # up
        (turned(0, 0, -350), 5, 1),  # counterclockwise from above
    ],
)
def test_the_tool_does_what_the_cap_does(mouse, report, column, sign):
    device, reports = mouse
    reports.waiting = [report]
    command = device.poll(SECOND)
    assert command.live
    np.testing.assert_allclose(command.twist, sign * np.eye(6)[column])


def test_a_cap_that_is_let_go_or_near_its_rest_moves_nothing(mouse):
    device, reports = mouse
    assert not device.poll(SECOND).live
    reports.waiting = [pushed(0, -350, 0), pushed(0, -30, 0)]
    assert not device.poll(SECOND).live


def test_silence_lets_go(mouse):
    device, reports = mouse
    reports.waiting = [pushed(0, -350, 0)]
    assert device.poll(SECOND).live
    assert device.poll(SECOND + 499_000_000).live
    assert not device.poll(SECOND + 501_000_000).live


def test_the_first_button_moves_the_gripper_once_a_press(mouse):
    device, reports = mouse
    toggles = []
    for at, buttons in enumerate((0, 1, 1, 0, 1)):
        reports.waiting = [pressed(buttons)]
        toggles.append(device.poll(SECOND + at).toggle)
    assert toggles == [False, True, False, False, True]


def test_a_device_that_is_pulled_out_is_one_sentence(mouse):
    device, reports = mouse
    reports.gone = True
    with pytest.raises(BidError, match="the SpaceMouse is gone"):
        device.poll(SECOND)
