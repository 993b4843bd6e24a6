"""A UR in lockstep: the real driver, servo loop, checks and controller share one clock that only waiting moves.

Between them stand plain calls instead of ur_rtde, sockets and a process. So nothing depends on how busy the computer
is, a second takes about a third of one, and limits of time can be tested to a cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from robots import ur_sweep
from robots.rtde_lies import CLOCK, END, NAMES, Change
from robots.tcp_proxy import DOWN, UP

from bid_ros.robots import loop as base_loop
from bid_ros.robots import process_arm
from bid_ros.robots.protocol import (
    MEMORY_SIZE,
    DriverMemory,
    DriverRequest,
    DriverState,
    Mode,
    PeriodStatistics,
    shared_memory,
)
from bid_ros.robots.ur import driver, loop, process, robot, watch
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.echo import UrEcho
from bid_ros.robots.ur.loop import UrLoop
from bid_ros.robots.ur.robot import UrRobot
from bid_ros.robots.ur.twin.config import ARMS, UrControllerConfig
from bid_ros.robots.ur.twin.machine import RuntimeState, UrMachine
from bid_ros.robots.ur.twin.pendant import INITIAL_Q
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.robots.ur.twin.program import DONE
from bid_ros.robots.ur.twin.rtde_server import write_outputs

MOVES = 0.01  # rad/s
EPOCH_NS = 1_700_000_000_000_000_000
REGISTERS = [f"input_double_register_{number}" for number in range(6)]
MODES = ("robot_mode", "safety_status_bits", "runtime_state")
WAITED_CYCLES = 1000


@dataclass
class State:
    """What the robot says once: the doubles of ``rtde_lies``, its target, its modes, the registers it received."""

    said: list[float]
    target_q: list[float]
    modes: list[int]
    echo: tuple[float, ...]


class Ended(Exception):
    """The process that drives the robot has ended with a status."""


class World:
    """One robot and one clock, which stands for the module ``time``.

    Args:
        generation: of the controller.

    Attributes:
        now_ns: the time.
        machine: the controller.
        loop: the servo loop; None while nobody is connected.
        last_motion_ns: when a joint last moved.
    """

    CLOCK_MONOTONIC_RAW = 0

    def __init__(self, generation: str) -> None:
        config = UrControllerConfig("127.0.0.1", generation, unlock_delay_s=0.5)
        self.address, self.generation = config.address, generation
        self.now_ns = self._due_ns = 1_000_000_000_000
        self._plant = KinematicPlant(INITIAL_Q)
        self.machine = UrMachine(config, self._plant, ARMS[generation])
        self.loop: UrLoop | None = None
        self.status: int | None = None
        self.last_motion_ns = 0
        self._period_ns = 1_000_000_000 // config.rate
        self._change: Change | None = None
        self._first: list[float] = []
        self._delay_ns = {UP: 0, DOWN: 0}
        self._way_up: deque[tuple[int, dict[str, float]]] = deque()
        self._way_down: deque[tuple[int, State]] = deque()
        self._frozen: set[str] = set()
        self.connections = 0
        self.hurried = False  # a thread of the loop asks: what it waits for comes too late
        self._working = False
        self._plans: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self._cycle()

    # The module ``time``.

    def monotonic_ns(self) -> int:
        return self.now_ns

    def clock_gettime_ns(self, _: int) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return EPOCH_NS + self.now_ns

    def monotonic(self) -> float:
        return self.now_ns / 1e9

    def sleep(self, seconds: float) -> None:
        """Let time pass: the controller's cycles, and the loop's periods unless it is the loop that waits."""
        end = self.now_ns + round(1e9 * seconds)
        while self._due_ns <= end:
            self.now_ns = max(self.now_ns, self._due_ns)
            self.cycle()
        self.now_ns = max(self.now_ns, end)

    # The network, and what a test does on it.

    def damage(self, change: Change) -> None:
        """Let the driver read changed states from now on."""
        self._change, self._first = change, []
        self._tell()

    def delay(self, direction: str, seconds: float) -> None:
        """Let everything that is sent one way from now on arrive later."""
        self._delay_ns[direction] = round(1e9 * seconds)

    def freeze(self, *directions: str) -> None:
        """Let nothing through."""
        self._frozen.update(directions)

    def heal(self) -> None:
        """End every harm. What was held up arrives."""
        self._change, self._delay_ns, self._frozen = None, {UP: 0, DOWN: 0}, set()
        self._way_up = deque((self.now_ns, fields) for _, fields in self._way_up)
        self._way_down = deque((self.now_ns, state) for _, state in self._way_down)
        self._tell()

    def send(self, fields: dict[str, float]) -> None:
        """Send a package of input fields to the controller."""
        earliest = self._way_up[-1][0] if self._way_up else 0  # none overtakes another
        self._way_up.append((max(earliest, self.now_ns + self._delay_ns[UP]), fields))
        self._deliver_up()

    def _deliver_up(self) -> None:
        while self._way_up and self._way_up[0][0] <= self.now_ns and UP not in self._frozen:
            fields = self._way_up.popleft()[1]
            for name, number in fields.items():
                self.machine.inputs.set(name, number)
            self.machine.inputs.written(list(fields))

    def when(self, condition: Callable[[], bool], action: Callable[[], None]) -> None:
        """Do something once at the first cycle at which a condition holds."""
        self._plans.append((condition, action))

    def ask(self, line: str) -> str:
        """Answer as the twin of ``ur_server.py``."""
        assert line == "last motion"
        return str(self.last_motion_ns)

    def cycle(self) -> None:
        """Pass a cycle of the controller, and the period of the loop with it."""
        self._cycle()
        for plan in [plan for plan in self._plans if plan[0]()]:
            self._plans.remove(plan)
            plan[1]()
        if self.loop is not None and not self._working:
            self._working = True
            try:
                self.loop.tick(self.now_ns)
            except Ended as end:
                self.loop, self.status = None, int(str(end))
            finally:
                self._working = False

    def _cycle(self) -> None:
        self.now_ns = max(self.now_ns, self._due_ns)
        self._due_ns += self._period_ns
        self._deliver_up()
        self.machine.cycle()
        write_outputs(self.machine)
        if np.abs(self._plant.joint_velocities).max() > MOVES:
            self.last_motion_ns = self.now_ns
        self._tell()

    def _tell(self) -> None:
        """Send the newest state on its way to the driver, and let the driver have what has arrived."""
        table = self.machine.outputs
        said = [value for name in NAMES for value in table.values[table.places[name]]]
        assert len(said) == END
        if self._change is not None:
            self._first = self._first or list(said)
            self._change(said, self._first, said[CLOCK] - self._first[CLOCK])
        echo = tuple(table.get(name) for name in REGISTERS)
        modes = [int(table.get(name)) for name in MODES]
        state = State(said, table.values[table.places["target_q"]], modes, echo)
        earliest = self._way_down[-1][0] if self._way_down else 0
        self._way_down.append((max(earliest, self.now_ns + self._delay_ns[DOWN]), state))
        while self._way_down and self._way_down[0][0] <= self.now_ns and DOWN not in self._frozen:
            self.state = self._way_down.popleft()[1]


class Receive:
    """What ur_rtde's receiving interface says, of the newest state that arrived."""

    def __init__(self, world: World) -> None:
        self._world = world

    def getTimestamp(self) -> float:
        return self._world.state.said[0]

    def getActualQ(self) -> list[float]:
        return self._world.state.said[1:7]

    def getActualQd(self) -> list[float]:
        return self._world.state.said[7:13]

    def getActualTCPPose(self) -> list[float]:
        return self._world.state.said[13:19]

    def getTargetTCPPose(self) -> list[float]:
        return self._world.state.said[19:25]

    def getTargetQ(self) -> list[float]:
        return self._world.state.target_q

    def getTargetSpeedFraction(self) -> float:
        return self._world.machine.outputs.get("target_speed_fraction")

    def getRobotMode(self) -> int:
        return self._world.state.modes[0]

    def getSafetyStatusBits(self) -> int:
        return self._world.state.modes[1]

    def getRuntimeState(self) -> int:
        return self._world.state.modes[2]

    def isConnected(self) -> bool:
        return True


class Control:
    """What ur_rtde's control interface does: commands in the registers, answered or not."""

    def __init__(self, world: World) -> None:
        self._world = world

    def servoL(self, pose: list[float], *others: float) -> bool:
        return self._send(24, [*pose, *others])

    def servoJ(self, joints: list[float], *others: float) -> bool:
        return self._send(11, [*joints, *others])

    def kickWatchdog(self) -> bool:
        return self._send(0)

    def servoStop(self, deceleration: float) -> bool:
        return self._ask(16, [deceleration])

    def moveJ(self, joints: list[float], speed: float, acceleration: float, asynchronous: bool) -> bool:
        return self._ask(1, [*joints, speed, acceleration], asynchronous)

    def stopJ(self, deceleration: float, asynchronous: bool) -> bool:
        return self._ask(34, [deceleration], asynchronous)

    def isJointsWithinSafetyLimits(self, joints: list[float]) -> bool:
        return self._ask(37, joints) and self._world.machine.outputs.get("output_int_register_1") == 1

    def setTcp(self, pose: list[float]) -> bool:
        return self._ask(29, pose)

    def setPayload(self, mass: float, center: list[float]) -> bool:
        return self._ask(17, [mass, *center])

    def setWatchdog(self, frequency: float) -> bool:
        return self._ask(35, [frequency])

    def stopScript(self) -> bool:
        return self._send(255)

    def isConnected(self) -> bool:
        return True

    def _send(self, command: int, numbers: Any = (), integer: int = 0) -> bool:
        fields: dict[str, float] = {
            f"input_double_register_{place}": float(number) for place, number in enumerate(numbers)
        }
        self._world.send({**fields, "input_int_register_1": integer, "input_int_register_0": command})
        return self._world.state.modes[2] == RuntimeState.PLAYING

    def _ask(self, command: int, numbers: Any = (), integer: int = 0) -> bool:
        """Send a command, wait for its answer, and clear it."""
        sent = self._send(command, numbers, integer)
        for _ in range(WAITED_CYCLES):
            if not sent or self._world.hurried:
                return False
            self._world.cycle()
            if self._world.machine.outputs.get("output_int_register_0") == DONE:
                return self._send(0)
            sent = self._world.state.modes[2] == RuntimeState.PLAYING
        raise AssertionError(f"the controller did not answer command {command}")


REST_POLL_S = 0.002


class Link:
    """The arm's side of the servo loop, as :class:`bid_ros.robots.ur.driver.UrLink`, without a process."""

    def __init__(self, world: World, config: UrConfig, release: bool) -> None:
        self._world, machine = world, world.machine
        world.status, world.loop = None, None
        world.connections += 1
        if release:
            machine.end_program("another client stopped it")
            world.sleep(0.6)
            assert machine.unlock()
        inputs = machine.inputs
        inputs.set("input_int_register_0", 0)  # as ur_rtde: the last command of another program stands there
        machine.run()
        world.cycle()
        echo = UrEcho(lambda: world.state.echo, world.monotonic_ns)
        self._robot = UrRobot(config, machine.config.rate, Receive(world), Control(world), echo)
        process.configure(config, self._robot)
        self._memory = DriverMemory(shared_memory(MEMORY_SIZE))
        self._requests, theirs = Pipe()
        world.loop = UrLoop(config, self._robot, self._memory, theirs)

    def state(self) -> DriverState:
        found = self._memory.read_state()
        assert found is not None
        return found

    def send(self, setpoint: Any) -> None:
        self._memory.setpoint.write(setpoint)

    def brake(self) -> None:
        self._memory.setpoint.write(None)

    def trouble(self, state: DriverState) -> str:
        return "" if self._world.status is None else self.state().fault

    def rests_within(self, wait_s: float) -> bool:
        for _ in range(round(wait_s / REST_POLL_S)):
            if self.state().mode is Mode.IDLE or self.trouble(self.state()):
                return True
            self._world.sleep(REST_POLL_S)
        return False

    def ask(self, request: DriverRequest, *arguments: object, wait_s: float = 1.0) -> str:
        answer = self._ask(request, *arguments)
        return answer if isinstance(answer, str) else ""

    def statistics(self) -> PeriodStatistics:
        answer = self._ask(DriverRequest.STATISTICS)
        assert isinstance(answer, PeriodStatistics)
        return answer

    def close(self) -> None:
        if self._ask(DriverRequest.CLOSE) == "":
            while self.state().mode is not Mode.IDLE and self._world.loop is not None:
                self._world.sleep(0.01)
            self._robot.end_program()
        self.kill()

    def kill(self) -> None:
        self._world.loop = None

    def _ask(self, request: DriverRequest, *arguments: object) -> object:
        if self._world.loop is not None:
            self._requests.send((request, *arguments))
        for _ in range(WAITED_CYCLES):
            if self._world.loop is None:
                break
            if self._requests.poll():
                return self._requests.recv()
            self._world.cycle()
        return "the process that drives the robot does not answer"


@dataclass
class Hurried:
    """A thread of the loop: a call to the robot whose answer nobody waits for."""

    world: World
    target: Callable[[], None]

    def start(self) -> None:
        self.world.hurried = True
        self.target()
        self.world.hurried = False


def _end(status: int) -> None:
    raise Ended(status)


@contextmanager
def lockstep(generation: str, *modules: Any) -> Iterator[World]:
    """A world whose clock is that of the driver, the sweep of the tests and more ``modules``."""
    world = World(generation)
    with pytest.MonkeyPatch.context() as patch:
        for module in (process_arm, base_loop, loop, process, robot, watch, ur_sweep, *modules):
            patch.setattr(module, "time", world)
        patch.setattr(loop, "threading", SimpleNamespace(Thread=lambda target, **_: Hurried(world, target)))
        patch.setattr(base_loop, "os", SimpleNamespace(_exit=_end))
        patch.setattr(driver, "UrLink", lambda config, release: Link(world, config, release))
        yield world
