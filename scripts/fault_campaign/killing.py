"""Faults of processes: killed, frozen, frozen for a while, one by one and in pairs; and a computer that is busy."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from computing import computing

from fault_campaign.fault import Fault, Robot, Scene
from fault_campaign.system import DRIVER, NODES, SUPERVISOR, TWIN

GRANT_S: Final = 0.5
AT_ONCE: Final = 0.0  # the supervisor ends the run
PARTS: Final = (*NODES, DRIVER, SUPERVISOR)
KILLED, FROZEN = "killed", "frozen"
SIGNALS: Final = {KILLED: signal.SIGKILL, FROZEN: signal.SIGSTOP}
STALLS_S: Final = (1.0, 10.0)
TWIN_FROZEN_S: Final = 2.0
HOGS_S: Final = 8.0

Deadline = Callable[[Robot], float | None]


def deadline_of(part: str, how: str) -> Deadline:
    """Return the deadline after which a part that is killed or frozen is found."""
    found: dict[str, Deadline] = {
        "camera": lambda robot: robot.heartbeat_s,
        "safety": lambda robot: robot.heartbeat_s,
        "policy": lambda robot: robot.heartbeat_s,
        "arm": lambda robot: robot.silence_s,
        DRIVER: lambda robot: robot.watchdog_s,
        "episode": lambda _: GRANT_S,
        # Nobody needs what these do from moment to moment. The supervisor ends a run of which a process is gone.
        "recorder": lambda _: AT_ONCE if how == KILLED else None,
        SUPERVISOR: lambda _: AT_ONCE if how == KILLED else None,
        TWIN: lambda _: AT_ONCE,
    }
    return found[part]


def _harm(part: str, how: str, scene: Scene) -> None:
    scene.system.send(part, SIGNALS[how])


def _freeze_twin(seconds: float, scene: Scene) -> float:
    """Freeze the twin. It cannot move meanwhile; what counts is that it does not move on when it is woken."""
    scene.freeze(TWIN, seconds)
    return time.monotonic()


def single() -> Iterator[Fault]:
    """Yield each part killed and frozen."""
    for how in (KILLED, FROZEN):
        for part in PARTS:
            inject: Callable[[Scene], float | None] = partial(_harm, part, how)
            gone = part == TWIN and how == KILLED
            if part == TWIN and how == FROZEN:
                inject = partial(_freeze_twin, TWIN_FROZEN_S)
            yield Fault(
                f"{part}-{how}", "processes", f"{part} {how}", inject, deadline_of(part, how), gone=gone
            )  # fmt: skip


def pairs(number: int, seed: int) -> Iterator[Fault]:
    """Yield pairs at random; neither is the twin, without which there is no arm to look at."""
    chance = random.Random(seed)
    parts = [part for part in PARTS if part != TWIN]
    known = ((("safety", FROZEN), (SUPERVISOR, KILLED)), ((DRIVER, FROZEN), ("arm", KILLED)))
    for index in range(number):
        first, second = chance.sample(parts, 2)
        harms = tuple((part, chance.choice((KILLED, FROZEN))) for part in (first, second))
        harms = known[index] if index < len(known) else harms  # nobody was left to wake these
        words = " and ".join(f"{part} {how}" for part, how in harms)

        def inject(scene: Scene, harms: tuple[tuple[str, str], ...] = harms) -> None:
            for part, how in harms:
                _harm(part, how, scene)

        yield Fault(f"pair-{seed}-{index}", "pairs", words, inject, partial(_pair_deadline, harms))


def _pair_deadline(harms: tuple[tuple[str, str], ...], robot: Robot) -> float | None:
    """Return the later deadline of a pair: who would have found the one may be the other."""
    supervised = not any(part == SUPERVISOR for part, _ in harms)
    found = []
    for part, how in harms:
        deadline = deadline_of(part, how)(robot)
        if part == "recorder" and not supervised:
            deadline = None  # only the supervisor ends a run for it
        if deadline is not None:
            found.append(deadline)
    return max(found, default=None)


def stalls() -> Iterator[Fault]:
    """Yield each part frozen for a while."""
    for seconds in STALLS_S:
        for part in PARTS:
            inject: Callable[[Scene], float | None] = partial(_stall, part, seconds)
            if part == TWIN:
                inject = partial(_freeze_twin, seconds)
            yield Fault(
                f"{part}-stalls-{seconds:g}s",
                "stalls",
                f"{part} stands still for {seconds:g} s",
                inject,
                deadline_of(part, FROZEN),
            )


def _stall(part: str, seconds: float, scene: Scene) -> None:
    scene.freeze(part, seconds)


def busy() -> Iterator[Fault]:
    """Yield a computer that has too much to do."""
    for share, priority in ((1, 0), (4, 0), (2, -20)):
        name = f"busy-{share}{'-first' if priority else ''}"
        words = f"{share} computing processes a core" + (" that go before everything else" if priority else "")
        yield Fault(name, "load", words, partial(_hog, share, priority), lambda _: None, may_stop=True)


def _hog(share: int, priority: int, scene: Scene) -> None:
    """Compute beside the system for a while."""
    with computing(share * (os.cpu_count() or 1), priority):
        time.sleep(HOGS_S)
