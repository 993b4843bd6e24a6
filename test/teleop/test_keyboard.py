"""Keys of a real pseudo-terminal drive the arm."""

import os
import pty
import termios

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.teleop.keyboard import DEVICE, Keyboard, KeyboardSettings, split_keys

SECOND = 1_000_000_000


@pytest.fixture
def keys():
    """A keyboard, and where to type."""
    master, slave = pty.openpty()
    keyboard = Keyboard(KeyboardSettings(terminal=os.ttyname(slave)))
    yield keyboard, lambda text: os.write(master, text.encode())
    for descriptor in (master, slave):
        os.close(descriptor)


def test_a_key_moves_the_tool_for_a_moment(keys):
    keyboard, write = keys
    assert not keyboard.poll(0).live
    write("w")
    command = keyboard.poll(SECOND)
    assert command.live
    np.testing.assert_allclose(command.twist, [1, 0, 0, 0, 0, 0])
    assert keyboard.poll(SECOND + 149_000_000).live
    assert not keyboard.poll(SECOND + 151_000_000).live


@pytest.mark.parametrize(
    ("typed", "twist"),
    [("s", [-1, 0, 0, 0, 0, 0]), ("\x1b[D", [0, 1, 0, 0, 0, 0]), ("F", [0, 0, -1, 0, 0, 0]), ("q", [0, 0, 0, 0, 0, 1])],
)
def test_each_key_moves_its_axis(keys, typed, twist):
    keyboard, write = keys
    write(typed)
    np.testing.assert_allclose(keyboard.poll(SECOND).twist, twist)


def test_space_moves_the_gripper_and_minus_slows_down(keys):
    keyboard, write = keys
    write(" ")
    assert keyboard.poll(0).toggle
    assert not keyboard.poll(0).toggle
    write("  ")
    assert not keyboard.poll(0).toggle, "twice is not at all"
    write("--w")
    assert keyboard.poll(SECOND).twist[0] == pytest.approx(1 / 2.25)
    write("=======w")
    assert keyboard.poll(SECOND).twist[0] == 1.0


@pytest.mark.parametrize(("typed", "mark"), [("\n", "success"), ("x", "failure"), ("\x7f", "discard")])
def test_keys_end_the_episode(keys, typed, mark):
    keyboard, write = keys
    write(typed)
    assert keyboard.poll(0).mark == mark
    assert keyboard.poll(0).mark == ""


def test_a_note_is_typed_and_its_keys_move_nothing(keys):
    keyboard, write = keys
    write("w")
    keyboard.poll(0)
    write("t wet cups ")
    command = keyboard.poll(SECOND)
    assert (command.live, command.toggle, command.note) == (False, False, "")
    write("x\x7f\x7f!\n")
    command = keyboard.poll(SECOND)
    assert (command.note, command.mark) == ("wet cups!", "")
    write("w")
    assert keyboard.poll(SECOND).live
    write("t \n")
    assert keyboard.poll(SECOND).note == "", "a note without a text is none"
    write("x")
    assert keyboard.poll(SECOND).mark == "failure"


def test_the_terminal_is_given_back_as_it_was():
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    keyboard = Keyboard(KeyboardSettings(terminal=os.ttyname(slave)))
    assert termios.tcgetattr(slave) != before
    keyboard.close()
    assert termios.tcgetattr(slave) == before
    for descriptor in (master, slave):
        os.close(descriptor)


def test_a_terminal_that_is_gone_is_one_sentence():
    master, slave = pty.openpty()
    keyboard = Keyboard(KeyboardSettings(terminal=os.ttyname(slave)))
    os.close(master)  # as if its window were closed
    with pytest.raises(BidError, match=r"^terminal /dev/pts/\d+ is (gone|closed)"):
        keyboard.poll(0)
    keyboard.close()
    os.close(slave)


@pytest.mark.parametrize(
    ("path", "why"),
    [("/dev/nothing", "cannot be opened: No such file"), ("/dev/null", "is not a terminal"), ("", "no")],
)
def test_what_is_no_terminal_is_one_sentence(path, why):
    with pytest.raises(BidError, match=why):
        Keyboard(KeyboardSettings(terminal=path))


def test_sequences_of_other_keys_are_left_out():
    assert split_keys(b"a\x1b[1;5Cb\x1b[3~c\x1bOAd\x1bw") == (["a", "b", "c", "up", "d", "w"], b"")


def test_an_arrow_that_arrives_in_two_parts_is_one_key():
    assert split_keys(b"a\x1b[") == (["a"], b"\x1b[")
    assert split_keys(b"\x1b[A") == (["up"], b"")


def test_keys_from_before_an_episode_ask_for_nothing(keys):
    keyboard, write = keys
    write("w \n")
    keyboard.begin(SECOND)
    command = keyboard.poll(SECOND + 1)
    assert (command.live, command.toggle, command.mark) == (False, False, "")


def test_the_rest_of_a_note_drives_nothing_in_the_next_episode(keys):
    keyboard, write = keys
    write("tthe cup ")
    keyboard.poll(SECOND)
    keyboard.begin(2 * SECOND)
    write("was wet")
    command = keyboard.poll(2 * SECOND + 1)
    assert (command.live, command.toggle, command.mark, command.note) == (False, False, "", "")
    write("\n")
    assert keyboard.poll(2 * SECOND + 2).note == "the cup was wet"


def test_an_unknown_setting_is_refused():
    with pytest.raises(BidError, match="settings of device 'keyboard': unknown field 'speed'"):
        DEVICE.read("speed: 3")
