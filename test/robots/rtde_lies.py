"""Plausible lies of a UR: a proxy rewrites the states that the driver reads, whole packages with valid numbers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from robots.tcp_proxy import Packages

from bid_ros.robots.ur.robot import VARIABLES
from bid_ros.robots.ur.rtde import PackageType, package

# Size, type, recipe, then what the driver asks for.
STATE: Final = struct.Struct(">HBB25diII7d")
NAMES: Final = ("timestamp", "actual_q", "actual_qd", "actual_TCP_pose", "target_TCP_pose")
assert VARIABLES[: len(NAMES)] == NAMES
CLOCK, JOINTS, SPEEDS, POSE, END = 0, 1, 7, 13, 25  # of the doubles

# Changes the 25 doubles of a state, given those of the first one it changes and the robot's seconds since then.
Change = Callable[[list[float], list[float], float], None]


class Lie(Packages):
    """Rewrites the states that one connection reads and leaves every other package alone.

    Args:
        change: what to do with a state.
        rest_too: repeat the first package of every other connection for ever.
    """

    def __init__(self, change: Change, rest_too: bool = False) -> None:
        super().__init__(self._rewritten)
        self._change, self._rest_too = change, rest_too
        self._first: list[float] = []
        self._frozen = b""

    def _rewritten(self, data: bytes, _: bytes) -> bytes:
        if data[2] != PackageType.DATA_PACKAGE:
            return data
        if len(data) != STATE.size:
            self._frozen = self._frozen or data
            return self._frozen if self._rest_too else data
        size, kind, recipe, *numbers = STATE.unpack(data)
        values, rest = numbers[:END], numbers[END:]
        self._first = self._first or list(values)
        self._change(values, self._first, values[CLOCK] - self._first[CLOCK])
        return STATE.pack(size, kind, recipe, *values, *rest)


def add(place: int, amount: float, rate: float = 0.0) -> Change:
    """Return a change that adds ``amount``, and ``rate`` more in every second, to one double."""

    def change(values: list[float], _: list[float], seconds: float) -> None:
        values[place] += amount + rate * seconds

    return change


def put(place: int, value: float) -> Change:
    """Return a change that puts ``value`` in the place of one double."""

    def change(values: list[float], _: list[float], __: float) -> None:
        values[place] = value

    return change


def freeze(begin: int, end: int) -> Change:
    """Return a change that leaves the doubles from ``begin`` to before ``end`` as they were first."""

    def change(values: list[float], first: list[float], _: float) -> None:
        values[begin:end] = first[begin:end]

    return change


def for_a_moment(lie: Change, seconds: float) -> Change:
    """Return a change that ends after some seconds."""

    def change(values: list[float], first: list[float], since: float) -> None:
        if since < seconds:
            lie(values, first, since)

    return change


def texts(payload: bytes) -> Packages:
    """Return a damage that sends a text message before each state and each answer to a set-point."""
    text = package(PackageType.TEXT_MESSAGE, payload)
    return Packages(lambda data, _: text + data if data[2] == PackageType.DATA_PACKAGE else data)
