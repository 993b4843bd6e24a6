"""How pytest-xdist divides the suite: files stay together, tests that go by the clock are few at once and go first."""

from __future__ import annotations

import enum
import os
from contextlib import suppress
from functools import cache
from typing import Any

import fork_server
from xdist.scheduler import LoadGroupScheduling

from bid_ros.system.priority import AUTOGROUP

# Whole systems: a core is hardly enough for a twin with its nodes.
SYSTEMS = (
    "test/nodes/test_cli.py",
    "test/nodes/test_in_charge.py",
    "test/nodes/test_joints.py",
    "test/nodes/test_takeover_run.py",
    "test/nodes/test_ur_system_faults.py",
    "test/commands/test_check.py",
    "test/commands/test_first_hour.py",
    "test/commands/test_new.py",
    "test/outside/",
    "test/scripts/results/system/",
    "test/tasks/picking/test_world.py",
    "test/tasks/placing/test_world.py",
    "test/tasks/table/test_own_objects.py",
)
# Running arms and nodes. They mostly wait for a clock.
TIMED = ("test/robots/", "test/nodes/", "test/system/", "test/tasks/test_twins.py")
# Of these, what has a clock of its own: it computes, and would keep the others from theirs.
LOCKSTEP = (
    "test/robots/franka/test_lies.py",
    "test/robots/franka/test_loop.py",
    "test/robots/franka/twin/test_robot_service.py",
    "test/robots/ur/test_delays.py",
    "test/robots/ur/test_kinematics.py",
    "test/robots/ur/test_lies.py",
    "test/robots/ur/test_motion.py",
)
# What takes longest begins first, so that it is not left over when everything else has ended.
LONGEST = (
    "test/nodes/test_cli.py",
    "test/nodes/test_ur_system_faults.py",
    "test/robots/test_contract.py",
    "test/nodes/test_arm_node.py",
    "test/nodes/test_recorder_node.py",
    "test/nodes/test_episode_node.py",
    "test/nodes/",
    "test/robots/",
    "test/bench/",
    "test/learning/",
    "test/commands/test_bench.py",
    "test/scripts/test_gpu_report.py",
)
# Niceness of systems, of timed and of computing tests. A computing one must not look like a slow robot. A system starts
# seven nodes, each with a share of the computer of its own: the timed tests, which need little, go before it. Where the
# user may raise priorities (root), both go before other work on the computer, as the nodes themselves do.
RAISED, LOWERED = (-4, -12, 8), (4, 0, 8)


class Kind(enum.IntEnum):
    """What a test, or a file of them, needs of the computer."""

    SYSTEM = 0
    TIMED = 1
    COMPUTING = 2


def kind_of(name: str) -> Kind:
    """Return the kind of a file, or of a test in it."""
    if name.startswith(SYSTEMS):
        return Kind.SYSTEM
    return Kind.TIMED if name.startswith(TIMED) and not name.startswith(LOCKSTEP) else Kind.COMPUTING


def kinds_for(worker: int, cores: int) -> tuple[Kind, ...]:
    """Return what a worker may run, in order: one in two cores runs systems, one timed tests, the others compute.

    Two timed ones beside a system held a twin up for so long on two cores that its robot counted as lost.
    """
    first = Kind.SYSTEM if worker < max(1, cores // 2) else Kind.TIMED if worker < cores else Kind.COMPUTING
    return tuple(kind for kind in Kind if kind >= first)


class Lanes(LoadGroupScheduling):
    """Hands a worker the next file, or group of the marker ``xdist_group``, of the first kind that it may run."""

    def _split_scope(self, nodeid: str) -> str:
        group = str(super()._split_scope(nodeid))
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: Any) -> None:
        kinds = kinds_for(self.nodes.index(node), len(os.sched_getaffinity(0)))
        ours = [name for name in self.workqueue if kind_of(name) in kinds]
        if not ours:
            node.shutdown()  # other workers run what is left
            return
        self.workqueue.move_to_end(min(ours, key=lambda name: (kind_of(name), _turn(name))), last=False)
        super()._assign_work_unit(node)

    def schedule(self) -> None:
        """Also let a worker that takes the place of a crashed one begin: it waits until it has two tests."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        """Give the files of a crashed worker to others; return the test that crashed, which is not run again."""
        units = self.assigned_work.pop(node)
        left = [(name, test) for name, tests in units.items() for test, over in tests.items() if not over]
        if not left:
            return None
        name, crashed = left[0]
        units[name][crashed] = True
        self.workqueue.update({name: tests for name, tests in units.items() if not all(tests.values())})
        for other in self.nodes:
            self._reschedule(other)
        return str(crashed)


def _turn(name: str) -> int:
    return next((place for place, prefix in enumerate(LONGEST) if name.startswith(prefix)), len(LONGEST))


def lead_session() -> None:
    """Begin a session, because Linux divides a busy computer between sessions (sched(7))."""
    with suppress(PermissionError):  # it leads one already
        os.setsid()


def share(kind: Kind) -> None:
    """Give this worker's session the share of the computer that a kind of tests needs."""
    level = _levels()[kind]
    with suppress(OSError):  # without autogroups this file does not exist
        AUTOGROUP.write_text(str(level))
    for process in (0, *fork_server.servers()):
        with suppress(PermissionError):  # a user who is not root may only lower it
            os.setpriority(os.PRIO_PROCESS, process, level)


@cache
def _levels() -> tuple[int, int, int]:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, min(RAISED))
    except PermissionError:
        return LOWERED
    os.setpriority(os.PRIO_PROCESS, 0, before)
    return RAISED
