"""A gamepad on a topic."""

from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.teleop.joy import DEVICE, Joy, JoySettings, Pad, PadSettings

AXES = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]  # left stick forward; the triggers rest at 1
BUTTONS = [0, 0, 0, 0, 1, 0, 0, 0]


def heard(now_ns: int = 0, **fields: object) -> Joy:
    joy = Joy(JoySettings(deadzone=0.0))
    joy.hear("joy", SimpleNamespace(**{"axes": AXES, "buttons": BUTTONS, **fields}), now_ns)
    return joy


def test_the_left_stick_drives_while_the_bumper_is_held():
    command = heard().poll(1)
    assert command.live
    np.testing.assert_allclose(command.twist, [1, 0, 0, 0, 0, 0], atol=1e-12)


def test_silence_opens_the_dead_mans_switch():
    joy = heard(now_ns=1_000_000_000)
    assert joy.poll(1_249_000_000).live
    assert not joy.poll(1_251_000_000).live
    assert not Joy(JoySettings()).poll(0).live


def test_what_is_missing_or_no_number_counts_as_rest():
    assert not heard(buttons=[]).poll(1).live
    assert not heard(axes=[0.0, float("nan")]).poll(1).twist.any()


@pytest.mark.parametrize(
    ("count", "held", "success", "discard", "idle"),
    [(8, 4, 7, 6, 5), (11, 4, 7, 6, 9), (13, 4, 9, 8, 7), (13, 4, 9, 8, 6), (15, 9, 6, 4, 7), (21, 9, 6, 4, 10)],
)
def test_each_known_controller_has_its_buttons_where_they_are(count, held, success, discard, idle):
    joy = Joy(JoySettings())

    def asks(*down):
        buttons = [int(at in down) for at in range(count)]
        joy.hear("joy", SimpleNamespace(axes=AXES, buttons=buttons), 0)
        return joy.poll(1)

    assert not asks().live and asks(held).live
    assert [asks(button).mark for button in (idle, success, discard)] == ["", "success", "discard"]


@pytest.mark.parametrize("buttons", [[0] * 12, [0, 0, 0, 1, 0, 1]])
def test_an_unknown_controller_is_refused_with_what_is_pressed(buttons):
    down = "3, 5" if any(buttons) else "none"
    with pytest.raises(BidError, match=rf"has {len(buttons)} buttons, .* \(pressed now: {down}\); valid are 8 to 11"):
        heard(buttons=buttons).poll(1)


def test_a_setting_says_where_the_buttons_of_any_controller_are():
    places = {"south": 2, "east": 1, "north": 0, "left_bumper": 6, "select": 8, "start": 9}
    joy = Joy(DEVICE.read(f"{{buttons: {places}, axes: {{left_y: 2}}}}".replace("'", "")))
    joy.hear("joy", SimpleNamespace(axes=[0.0, 0.0, 1.0], buttons=[int(at == 6) for at in range(12)]), 0)
    command = joy.poll(1)
    assert command.live and command.twist[0] == pytest.approx(1.0)
    for wrong, said in (("{south: 1}", "valid are all of"), ("{knob: 1}", "button 'knob' does not exist")):
        with pytest.raises(BidError, match=said):
            DEVICE.read(f"buttons: {wrong}")


def test_the_node_is_told_which_topic_it_is():
    assert DEVICE.topics(None, DEVICE.read("topic: pad/joy")) == {"pad/joy": "sensor_msgs/msg/Joy"}


REST = dict.fromkeys(("left_x", "left_y", "right_x", "right_y", "hat_x", "hat_y"), 0.0)
UP = {"south": False, "left_bumper": False, "start": False, "select": False}
HELD = {**UP, "left_bumper": True}


def test_sticks_move_the_axes_they_are_documented_to_move():
    pad = Pad(PadSettings())
    for name, column in {"left_y": 0, "left_x": 1, "right_y": 2, "right_x": 5}.items():
        np.testing.assert_allclose(pad.command({**REST, name: 1.0}, HELD).twist, np.eye(6)[column])


def test_a_stick_near_its_rest_moves_nothing_and_a_little_deflection_is_fine():
    pad = Pad(PadSettings(deadzone=0.1, expo=1.0))
    assert pad.command({**REST, "left_x": 0.1}, HELD).twist[1] == 0.0
    assert pad.command({**REST, "left_x": -0.55}, HELD).twist[1] == pytest.approx(-0.125)


def test_only_the_dead_mans_switch_makes_it_live():
    pad = Pad(PadSettings())
    assert not pad.command({**REST, "left_x": 1.0}, UP).live
    assert pad.command(REST, HELD).live


def test_the_gripper_moves_once_a_press_and_only_if_live():
    pad = Pad(PadSettings())
    presses = [pad.command(REST, {**HELD, "south": down}).toggle for down in (True, True, False, True, True, False)]
    assert presses == [False, False, False, True, False, False], "a button held at the start does not count"
    assert not pad.command(REST, {**UP, "south": True}).toggle


def test_start_and_select_end_the_episode_once_a_press():
    pad = Pad(PadSettings())
    pad.command(REST, UP)
    assert [pad.command(REST, {**UP, "start": True}).mark for _ in range(2)] == ["success", ""]
    assert pad.command(REST, {**UP, "select": True}).mark == "discard"


def test_a_failure_and_a_note_have_buttons_where_a_gamepad_has_them():
    pad = Pad(PadSettings())
    pad.command(REST, UP)
    assert pad.command(REST, {**UP, "east": True}).mark == "failure"
    assert [pad.command(REST, {**UP, "north": True}).note for _ in range(2)] == ["look at this moment", ""]


def test_a_setting_outside_its_range_is_refused():
    with pytest.raises(BidError, match=r"deadzone is 0\.9; valid is"):
        PadSettings(deadzone=0.9)
