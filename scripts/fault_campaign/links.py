"""A damaged network between the driver process and its robot: TCP of a UR, UDP of a Franka, and robots that lie."""

from __future__ import annotations

import itertools
import random
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from fault_campaign.fault import Fault, Robot, Scene
from fault_campaign.system import Plan

sys.path.append(str(Path(__file__).resolve().parents[2] / "test"))

from robots.tcp_proxy import DOWN, UP, Network, corrupt, drop, duplicate, reorder

from fault_campaign.fci_network import FciNetwork, Packets, whole

FRANKA, UR = "franka_place", "ur5_pick"
WAYS: Final = {"states": (DOWN,), "commands": (UP,), "both ways": (UP, DOWN)}
_NUMBER: Final = struct.Struct("<Q")  # a Franka's state begins with its number, which is its time in ms
_REAL: Final = struct.Struct("<f")
POSE_X, JOINT_1 = 8 + 4 * 12, 8 + 4 * (6 * 16 + 1 + 9 + 3 + 1 + 9 + 3 + 4 + 3 * 7)  # bytes before them in a state
FOUND_S, FASTER = 0.3, 1.2
# Commands that are lost, not too many in a row, as a twin forgives them: its client shares its cores. Of a robot the
# driver process judges how many of the last 100 commands arrived.
FORGIVEN: Final = ("dropped", "doubled", "swapped")
_open: dict[str, Any] = {}  # networks of running trials, by trace
_ADDRESSES: Final = itertools.count(1)


def links() -> Iterator[Fault]:
    """Yield each damage of the network, and each lie of the Franka."""
    for way in WAYS:
        slug = way.replace(" ", "-")
        for name, (what, packets) in _packets().items():
            fault = _fault(FRANKA, f"udp-{name}-{slug}", f"UDP, {way}: {what}", partial(_damage_packets, packets, way))
            yield replace(fault, deadline=lambda _: None, may_stop=True) if name in FORGIVEN else fault
        for name, (what, damage) in _BYTES.items():
            yield _fault(UR, f"tcp-{name}-{slug}", f"TCP, {way}: {what}", partial(_damage_bytes, damage, way))
    for name, (what, lie) in _LIES.items():
        fault = _fault(FRANKA, f"lie-{name}", f"the robot says: {what}", partial(_tell, lie))
        yield replace(fault, deadline=lambda _: FOUND_S, faster=FASTER)


def _fault(task: str, name: str, what: str, inject: Callable[[Scene], None]) -> Fault:
    return Fault(name, "links", what, inject, _deadline, prepare=_insert, clean=_remove, tasks=(task,))


def _deadline(robot: Robot) -> float:
    """Return when the driver process, or the robot's watchdog, must have found that nothing comes."""
    return float(robot.config.state_timeout_s)


def _insert(plan: Plan, robot: Robot) -> None:
    """Put a network between arm and twin."""
    number = next(_ADDRESSES)
    ours, theirs = (f"127.{net}.{number // 250}.{number % 250 + 1}" for net in (201, 202))
    kind = FciNetwork if robot.name == FRANKA else Network
    _open[plan.trace] = kind(ours, theirs)
    plan.parameters.setdefault("twin", {})["address"] = theirs
    plan.parameters.setdefault("arm", {})["robot_ip"] = ours


def _remove(folder: Path) -> None:
    _open.pop(str(folder / "trace.bin")).close()


def _damage_bytes(damage: Callable[[Network, str], None], way: str, scene: Scene) -> None:
    for direction in WAYS[way]:
        damage(_open[scene.system.plan.trace], direction)


def _damage_packets(make: Callable[[], Packets], way: str, scene: Scene) -> None:
    for direction in WAYS[way]:
        _open[scene.system.plan.trace].packets[direction] = make()


_BYTES: Final[dict[str, tuple[str, Callable[[Network, str], None]]]] = {
    "frozen": ("nothing comes any more", lambda network, way: network.freeze(way)),
    "late": ("0.5 s late", lambda network, way: network.delay(way, 0.5)),
    "dropped": ("bytes are lost", lambda network, way: network.damage(way, drop)),
    "doubled": ("bytes come twice", lambda network, way: network.damage(way, duplicate)),
    "swapped": ("bytes in another order", lambda network, way: network.damage(way, reorder)),
    "corrupt": ("bytes are changed", lambda network, way: network.damage(way, corrupt)),
}


def _packets() -> dict[str, tuple[str, Callable[[], Packets]]]:
    return {
        "frozen": ("nothing comes any more", lambda: lambda _: []),
        "late": ("0.2 s late", lambda: lambda data: [(0.2, data)]),
        "dropped": ("half of them are lost", _lossy),
        "doubled": ("each comes twice", lambda: lambda data: [(0.0, data), (0.001, data)]),
        "swapped": ("in another order, 0 to 20 ms late", _shuffled),
        "corrupt": ("bytes are changed", lambda: lambda data: [(0.0, corrupt(data))]),
    }


def _lossy() -> Packets:
    chance = random.Random(1)
    return lambda data: whole(data) if chance.random() < 0.5 else []


def _shuffled() -> Packets:
    chance = random.Random(2)
    return lambda data: [(chance.uniform(0.0, 0.02), data)]


class Lie:
    """Rewrites states of a Franka, given the first one that it rewrites.

    Args:
        change: returns what is sent in the place of a state.
    """

    def __init__(self, change: Callable[[bytearray, bytes, float], bytearray]) -> None:
        self._change, self._first, self._begun = change, b"", time.monotonic()

    def __call__(self, data: bytes) -> list[tuple[float, bytes]]:
        """Return what is sent in the place of a state."""
        self._first = self._first or data
        return whole(bytes(self._change(bytearray(data), self._first, time.monotonic() - self._begun)))


def _add(place: int, amount: float, rate: float = 0.0) -> Callable[[bytearray, bytes, float], bytearray]:
    def change(data: bytearray, _: bytes, seconds: float) -> bytearray:
        _REAL.pack_into(data, place, _REAL.unpack_from(data, place)[0] + amount + rate * seconds)
        return data

    return change


def _frozen(data: bytearray, first: bytes, _: float) -> bytearray:
    return data[: _NUMBER.size] + bytearray(first[_NUMBER.size :])


_LIES: Final = {
    "frozen": ("everything stands still but the time", _frozen),
    "pose": ("its tool is 1 m elsewhere", _add(POSE_X, 1.0)),
    "drift": ("its tool drifts by 0.3 m/s", _add(POSE_X, 0.0, 0.3)),
    "joint": ("joint 1 is 1 rad elsewhere", _add(JOINT_1, 1.0)),
}


def _tell(change: Callable[[bytearray, bytes, float], bytearray], scene: Scene) -> None:
    _open[scene.system.plan.trace].packets[DOWN] = Lie(change)
