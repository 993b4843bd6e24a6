"""A gamepad of this computer: its events, as a pad sends them. No test machine has /dev/uinput."""

import pytest

from bid_ros.core.errors import BidError
from bid_ros.teleop.gamepad import BUTTONS, STICKS, EventPad, Gamepad, GamepadSettings, layout_of

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


XBOX = [0x130, 0x131, 0x133, 0x134, 0x136, 0x137, 0x13A, 0x13B, 0x13C, 0x13D, 0x13E]
DUALSHOCK = [*XBOX, 0x138, 0x139]  # of the kernel's driver: 13
IN_TURN = list(range(0x130, 0x13E))


@pytest.mark.parametrize("keys", [XBOX, DUALSHOCK])
def test_a_pad_of_a_driver_has_the_kernel_s_codes(keys):
    axes, buttons = layout_of("pad", 0x054C, keys, [], GamepadSettings())
    assert (axes, buttons) == (STICKS, BUTTONS)


def test_the_triggers_of_a_playstation_pad_without_its_driver_end_no_episode():
    axes, buttons = layout_of("Wireless Controller", 0x054C, IN_TURN, [], GamepadSettings())
    pad = EventPad({0x02: (0, 255), 0x05: (0, 255)}, axes, buttons)
    for code in (0x136, 0x137, 0x13A, 0x13B):  # L2, R2 and the sticks: the left bumper, select and start of others
        pad.take(KEY, code, 1)
    assert not any(pad.buttons.values())
    pad.take(KEY, 0x134, 1)
    pad.take(AXIS, 0x05, 0)
    assert pad.buttons["left_bumper"] and pad.axes["right_y"] == -1.0


@pytest.mark.parametrize("keys", [IN_TURN, list(range(0x120, 0x12D))])
def test_an_unknown_pad_is_refused_with_what_is_pressed_unless_a_setting_names_its_buttons(keys):
    with pytest.raises(BidError, match=rf"of gamepad 'Generic' with buttons {keys[0]}, .*pressed now: {keys[3]}\)"):
        layout_of("Generic", 0x0079, keys, [keys[3]], GamepadSettings())
    named = dict(zip(("south", "east", "north", "left_bumper", "select", "start"), keys, strict=False))
    _, buttons = layout_of("Generic", 0x0079, keys, [], GamepadSettings(buttons=named))
    assert buttons[keys[3]] == "left_bumper"
