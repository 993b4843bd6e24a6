"""Learns which number each button and axis of a gamepad has: a person presses one after the other."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bid_ros.teleop.joy import BUTTONS

PRESS: Final = {
    "south": "the lowest of the four buttons at the right (A, cross)",
    "east": "the right one of these four (B, circle)",
    "north": "the upper one of these four (Y, triangle)",
    "left_bumper": "the left bumper, above the trigger (L1)",
    "select": "select (back, share)",
    "start": "start (options)",
}
PUSH: Final = {
    "left_x": "the left stick to the left",
    "left_y": "the left stick forward",
    "right_x": "the right stick to the left",
    "right_y": "the right stick forward",
    "hat_x": "the d-pad to the left",
    "hat_y": "the d-pad forward",
}
FAR: Final = 0.6  # of an axis's way from its middle to its end, from where it rested
POLL_S: Final = 0.02


@dataclass(frozen=True)
class PadState:
    """What is pressed, and where each axis is from -1 to 1, by number. Left and forward are negative."""

    pressed: frozenset[int]
    axes: Mapping[int, float]


class PadLesson:
    """Asks a person for every button and axis.

    Args:
        read: returns the state of the gamepad now. Raises BidError if it is gone.
        say: tells the person what to press.
        pause: waits so many s between two looks.
    """

    def __init__(
        self, read: Callable[[], PadState], say: Callable[[str], None], pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._read, self._say, self._pause = read, say, pause

    def learn(self) -> dict[str, dict[str, int]]:
        """Return the settings ``buttons`` and ``axes`` of :class:`bid_ros.teleop.joy.PadSettings`."""
        self._released()
        rest = self._read()
        buttons: dict[str, int] = {}
        for name in BUTTONS:
            buttons[name] = self._button(PRESS[name], buttons)
        axes: dict[str, int] = {}
        for name, what in PUSH.items():
            found = self._axis(what, rest, axes)
            axes.update({} if found is None else {name: found})
        return {"buttons": buttons, "axes": axes}

    def _button(self, what: str, known: Mapping[str, int]) -> int:
        """Return the number of the one button that is pressed next, and of no other name."""
        names = {number: PRESS[name] for name, number in known.items()}
        self._say(f"press {what}")
        while True:
            pressed = self._until(lambda state: bool(state.pressed)).pressed
            self._released()
            if len(pressed) > 1:
                self._say(f"{len(pressed)} buttons went down; press {what} alone")
            elif (number := next(iter(pressed))) in names:
                self._say(f"that is {names[number]}; press {what}")
            else:
                return number

    def _axis(self, what: str, rest: PadState, known: Mapping[str, int]) -> int | None:
        """Return the number of the axis that is pushed next; None: a button was pressed instead."""
        self._say(f"push {what} and let go, or press any button if the gamepad has none")
        while True:
            state = self._until(lambda state: bool(state.pressed) or _farthest(state, rest)[1] > FAR)
            number = None if state.pressed else _farthest(state, rest)[0]
            self._until(lambda state: not state.pressed and _farthest(state, rest)[1] < FAR / 2)
            if number is None or number not in known.values():
                if number is not None and state.axes[number] > rest.axes.get(number, 0.0):
                    self._say(f"axis {number} counts the other way round: the arm will go opposite to {what}")
                return number
            self._say(f"axis {number} is another direction already; push {what}")

    def _released(self) -> None:
        if self._read().pressed:
            self._until(lambda state: not state.pressed)

    def _until(self, condition: Callable[[PadState], bool]) -> PadState:
        while not condition(state := self._read()):
            self._pause(POLL_S)
        return state


def settings_text(learned: Mapping[str, Mapping[str, int]]) -> str:
    """Return what was learned as ``--device-settings`` takes it."""
    parts = (f"{what}: {{{_pairs(numbers)}}}" for what, numbers in learned.items() if numbers)
    return f"{{{', '.join(parts)}}}"


def _pairs(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {number}" for name, number in numbers.items())


def _farthest(state: PadState, rest: PadState) -> tuple[int, float]:
    """Return the axis that is farthest from its rest, and how far."""
    away = {number: abs(value - rest.axes.get(number, 0.0)) for number, value in state.axes.items()}
    return max(away.items(), key=lambda item: item[1], default=(-1, 0.0))
