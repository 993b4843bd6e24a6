"""What a fault of the campaign is, and what it may act on."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.core.task import Task
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.folder import System, find_system
from fault_campaign.course import Array
from fault_campaign.system import Plan, RunningSystem
from fault_campaign.witness import Witness


@dataclass(frozen=True)
class Robot:
    """A system of the campaign and the deadlines that its files set.

    Args:
        name: of the system.
    """

    name: str

    @cached_property
    def system(self) -> System:
        """The system."""
        return find_system(self.name)

    @cached_property
    def task(self) -> Task:
        """Its task."""
        return self.system.task

    @cached_property
    def config(self) -> Any:
        """Configuration of its arm in the twin."""
        return load_arm_config(self.system.file("robot.yaml"), "127.0.0.1", True, self.task.robot)

    @property
    def heartbeat_s(self) -> float:
        """Longest silence of a required node."""
        return float(self.system.parameters["arm"]["heartbeat_deadline_s"])

    @property
    def silence_s(self) -> float:
        """Longest silence of the arm node, for the process that drives the robot."""
        return float(self.config.silence_timeout_s)

    @property
    def watchdog_s(self) -> float:
        """Longest silence of that process, for the robot."""
        return 0.02 if self.task.robot == "franka" else 1.0 / float(self.config.watchdog_hz)

    def tool(self, joints: Array) -> Array:
        """Return the place ``(3,)`` m of the tool for joints ``(7,)`` rad, of which a UR has six."""
        if self.task.robot == "franka":
            from bid_ros.robots.franka.kinematics import forward

            return forward(joints)[0]
        from bid_ros.robots.ur.kinematics import UR5E

        offset = [*self.config.tool_offset, 0.0, 0.0, 0.0]
        return np.asarray(UR5E.forward(joints[:6].tolist(), offset)[:3])


@dataclass
class Scene:
    """What a fault may act on.

    Attributes:
        robot: of the system; system: it runs.
        witness: of the trial; random: of its seed.
        folder: of the trial.
        undo: called when the trial has been watched, last first, before the system is ended.
    """

    robot: Robot
    system: RunningSystem
    witness: Witness
    random: random.Random
    folder: Path
    undo: list[Callable[[], object]] = field(default_factory=list)

    def freeze(self, name: str, seconds: float | None = None) -> None:
        """Freeze a process; wake it after some seconds, or not at all."""
        self.system.send(name, signal.SIGSTOP)
        if seconds is not None:
            time.sleep(seconds)
            self.system.send(name, signal.SIGCONT)

    def press(self, button: str) -> None:
        """Press a button of the twin."""
        path = Path(self.system.plan.trace + ".press")
        part = path.with_suffix(".part")
        part.write_text(button)
        part.replace(path)


def nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Fault:
    """A fault of the campaign.

    Attributes:
        name: one word; group: of its row; what: for people.
        inject: does it, and may return the steady time in s from which the time to rest counts, if not its beginning.
        deadline: s after which a watchdog must have found it; None: nothing has to stop.
        prepare: changes the plan before the system starts.
        may_stop: whether a stop with a reason is right where none is demanded.
        gone: the arm is gone with it, so nothing is left to come to rest; a reason is demanded all the same.
        faster: largest speed on the way as a multiple of that before; 0: only the limits hold.
        clean: is called with the folder of the trial when everything has been read.
        tasks: systems that it is for; empty: all.
        missing: one sentence why it cannot be tried here, or empty.
    """

    name: str
    group: str
    what: str
    inject: Callable[[Scene], float | None]
    deadline: Callable[[Robot], float | None]
    prepare: Callable[[Plan, Robot], None] = nothing
    may_stop: bool = False
    gone: bool = False
    faster: float = 0.0
    clean: Callable[[Path], object] = nothing
    tasks: tuple[str, ...] = ()
    missing: Callable[[], str] = str
