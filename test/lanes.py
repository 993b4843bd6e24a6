"""How pytest-xdist divides the suite: files stay together, tests that go by the clock are few at once and go first."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import Any

import fork_server
from xdist.scheduler import LoadGroupScheduling

from bid_ros.system.priority import AUTOGROUP

# Running arms, nodes and systems. They mostly wait for a clock. A core is hardly enough for a twin with its nodes.
TIMED = (
    "test/robots/",
    "test/nodes/",
    "test/system/",
    "test/outside/",
    "test/commands/test_check.py",
    "test/commands/test_first_hour.py",
    "test/commands/test_new.py",
    "test/tasks/picking/test_world.py",
    "test/tasks/placing/test_world.py",
)
# What takes longest begins first, so that it is not left over when everything else has ended.
LONGEST = (
    "test/nodes/test_cli.py",
    "test/nodes/test_in_charge.py",
    "test/robots/test_contract.py",
    "test/nodes/",
    "test/robots/",
    "test/bench/",
    "test/learning/",
)
FEW_CORES = 4
# Niceness of timed and of computing tests. A computing one must not look like a slow robot. Where the user may raise
# priorities (root), all go before other work on the computer, as the nodes themselves do.
RAISED, LOWERED = (-12, -4), (0, 8)


def is_timed(name: str) -> bool:
    """Whether a test, or a group of them, goes by the clock."""
    return name.startswith(TIMED)


def timed_at_once() -> int:
    """Return how many tests may go by the clock at once on this computer."""
    cores = len(os.sched_getaffinity(0))
    return 2 if cores < FEW_CORES else cores // 2


class Lanes(LoadGroupScheduling):
    """Hands a worker the next file, or group of the marker ``xdist_group``.

    The first workers take timed files while there are any, then computing ones. The others compute only.
    """

    def _split_scope(self, nodeid: str) -> str:
        group = str(super()._split_scope(nodeid))
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: Any) -> None:
        timed = node in self.nodes[: timed_at_once()]
        waiting = sorted(self.workqueue, key=_turn)
        ours = [name for name in waiting if is_timed(name) == timed]
        if not ours and not timed:
            node.shutdown()  # what is left goes by the clock
            return
        self.workqueue.move_to_end((ours or waiting)[0], last=False)
        super()._assign_work_unit(node)


def _turn(name: str) -> int:
    return next((place for place, prefix in enumerate(LONGEST) if name.startswith(prefix)), len(LONGEST))


def lead_session() -> None:
    """Begin a session, because Linux divides a busy computer between sessions (sched(7))."""
    with suppress(PermissionError):  # it leads one already
        os.setsid()


def share(timed: bool) -> None:
    """Give this worker's session the share of a timed or of a computing test."""
    level = _levels()[not timed]
    with suppress(OSError):  # without autogroups this file does not exist
        AUTOGROUP.write_text(str(level))
    for process in (0, *fork_server.servers()):
        with suppress(PermissionError):  # a user who is not root may only lower it
            os.setpriority(os.PRIO_PROCESS, process, level)


@cache
def _levels() -> tuple[int, int]:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, RAISED[0])
    except PermissionError:
        return LOWERED
    os.setpriority(os.PRIO_PROCESS, 0, before)
    return RAISED
