"""A gamepad of this computer: its events, as a pad sends them. No test machine has /dev/uinput."""

import pytest

from bid_ros.core.errors import BidError
from bid_ros.teleop.gamepad import EventPad, Gamepad, GamepadSettings

KEY, AXIS, SYNC = 1, 3, 0
RANGES = {0x00: (-32768, 32767), 0x01: (-32768, 32767), 0x04: (0, 255), 0x11: (-1, 1)}


def test_axes_count_from_minus_one_to_one_whatever_their_range():
    pad = EventPad(RANGES)
    for code, value in ((0x00, -32768), (0x01, 32767), (0x04, 255), (0x11, -1)):
        pad.take(AXIS, code, value)
    assert {name: pad.axes[name] for name in ("left_x", "left_y", "right_y", "hat_y")} == {
        "left_x": -1.0,
        "left_y": 1.0,
        "right_y": 1.0,
        "hat_y": -1.0,
    }


def test_buttons_go_down_and_up():
    pad = EventPad(RANGES)
    pad.take(KEY, 0x136, 1)
    assert pad.buttons["left_bumper"]
    pad.take(KEY, 0x136, 0)
    assert not pad.buttons["left_bumper"]


def test_lost_events_open_the_dead_mans_switch():
    pad = EventPad(RANGES)
    pad.take(KEY, 0x136, 1)
    pad.take(SYNC, 3, 0)
    assert not pad.buttons["left_bumper"]


def test_what_is_not_on_a_gamepad_is_ignored():
    pad = EventPad(RANGES)
    pad.take(KEY, 0x1FF, 1)
    pad.take(AXIS, 0x28, 5)
    assert not any(pad.buttons.values())
    assert not any(pad.axes.values())


def test_a_missing_gamepad_is_one_sentence(tmp_path):
    with pytest.raises(BidError, match=r"gamepad .*nothing cannot be opened: No such file"):
        Gamepad(GamepadSettings(path=str(tmp_path / "nothing")))
