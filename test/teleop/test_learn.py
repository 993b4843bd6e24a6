"""A gamepad that nobody knows: a person presses what is asked for, and the settings fit the pad."""

import re

import pytest
import yaml

from bid_ros.cli import main
from bid_ros.teleop.gamepad import GamepadSettings, layout_of
from bid_ros.teleop.joy import BUTTONS
from bid_ros.teleop.learn import PRESS, PUSH, PadLesson, PadState, settings_text

REST = {0: 0.0, 1: 0.0, 2: -1.0, 3: 0.0, 4: 0.0}  # 2 is a trigger, which rests at its end


class Person:
    """Answers each thing that is asked for with the next of ``does``: buttons that go down, or an axis and its place.

    What is done stays for three looks, as a finger does, and then everything rests for three.
    """

    def __init__(self, *does):
        self.does, self.said, self._states = list(does), [], [PadState(frozenset({7}), REST)] * 2

    def say(self, text):
        self.said.append(text)
        done = self.does.pop(0) if self.does else ()
        pressed, moved = (done, {}) if isinstance(done, tuple) else ((), done or {})
        down = PadState(frozenset(pressed), REST | moved)
        self._states += [down] * 3 + [PadState(frozenset(), REST)] * 3

    def read(self):
        return self._states.pop(0) if self._states else PadState(frozenset(), REST)

    def learn(self):
        return PadLesson(self.read, self.say, lambda seconds: None).learn()


BUTTONS_PRESSED = [(0x120,), (0x121,), (0x123,), (0x124,), (0x128,), (0x129,)]
AXES_PUSHED = [{0: -1.0}, {1: -0.9}, {3: -1.0}, {4: -1.0}, (0x120,), (0x120,)]  # no d-pad that is an axis


def test_what_is_pressed_names_the_buttons_and_axes_of_a_pad_that_nobody_knows():
    person = Person(*BUTTONS_PRESSED, *AXES_PUSHED)
    learned = person.learn()
    assert learned["buttons"] == dict(zip(BUTTONS, (0x120, 0x121, 0x123, 0x124, 0x128, 0x129), strict=True))
    assert learned["axes"] == {"left_x": 0, "left_y": 1, "right_x": 3, "right_y": 4}
    assert [text for text in person.said if text.startswith("press ")] == [f"press {what}" for what in PRESS.values()]
    options = GamepadSettings(**yaml.safe_load(settings_text(learned)))
    axes, buttons = layout_of("Generic", 0x0079, range(0x120, 0x12D), [], options)
    assert buttons[0x124] == "left_bumper" and axes[3] == "right_x"


def test_two_at_once_and_the_same_again_are_asked_for_again():
    person = Person((0x120,), (0x120,), (0x121, 0x125), (0x121,), *BUTTONS_PRESSED[2:], *AXES_PUSHED)
    assert person.learn()["buttons"]["east"] == 0x121
    assert f"that is {PRESS['south']}; press {PRESS['east']}" in person.said
    assert f"2 buttons went down; press {PRESS['east']} alone" in person.said


def test_an_axis_that_counts_the_other_way_or_is_pushed_twice_is_said():
    pushed = [{0: 1.0}, {0: -1.0}, {1: -1.0}, *AXES_PUSHED[2:]]
    person = Person(*BUTTONS_PRESSED, pushed[0], None, *pushed[1:])
    assert person.learn()["axes"]["left_y"] == 1
    assert f"axis 0 counts the other way round: the arm will go opposite to {PUSH['left_x']}" in person.said
    assert f"axis 0 is another direction already; push {PUSH['left_y']}" in person.said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--learn", "--device-settings", "path: /nowhere"], r"gamepad /nowhere cannot be opened: No such file"),
        (["--learn", "--device-settings", "buttons: {south: 1}"], r"valid are all of south, east"),
        ([], r"bid teleop names no system; valid is one"),
    ],
)
def test_bad_input_is_one_sentence_and_starts_nothing(words, said, capsys):
    assert main(["teleop", *words]) == 2
    error = capsys.readouterr().err
    assert re.search(said, error) and error.count("\n") == 1
