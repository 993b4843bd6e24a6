"""A Franka in lockstep: the real loop and checks, and a robot of plain numbers, share one clock that a test moves.

The robot is a mass under franky's impedance law, which sees what the robot says, lies included. So nothing depends on
how busy the computer is, and limits of time can be tested to a period.
"""

from __future__ import annotations

import copy
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio
import pytest

from bid_ros.control.spatial import Pose
from bid_ros.core.rotation import quaternion_from_matrix
from bid_ros.robots import loop as base_loop
from bid_ros.robots.base import Dynamics
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.kinematics import CHAIN, FLANGE_CHAIN
from bid_ros.robots.franka.loop import RATE_HZ, FrankaLoop
from bid_ros.robots.franka.model import HOME_Q
from bid_ros.robots.franka.reading import FrankaReading
from bid_ros.robots.protocol import (
    MEMORY_SIZE,
    DriverMemory,
    DriverRequest,
    DriverState,
    TimedJoints,
    TimedSetpoint,
    shared_memory,
)

MS = 1_000_000
PERIOD_NS = 1_000_000_000 // RATE_HZ
MASS_KG, JOINT_KG_M2 = 4.0, 1.0
TORQUE_RATE = 1.0  # Nm/ms
MOST_TORQUE = np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])  # Nm
ZERO = (0.0, 0.0, 0.0)
DAMPED = 1e-6 * np.eye(6)

# Changes what the robot says, given what it said first under this lie, and the ms since then.
Lie = Callable[[FrankaReading, FrankaReading, int], FrankaReading]


def pose_of(place: np.ndarray, turn: np.ndarray) -> Pose:
    x, y, z = place.tolist()
    a, b, c, d = quaternion_from_matrix(turn).tolist()
    return Pose((x, y, z), (a, b, c, d))


def tool_in_flange() -> Pose:
    place, turn = FLANGE_CHAIN.forward(HOME_Q)
    there, turned = CHAIN.forward(HOME_Q)
    return pose_of(turn.T @ (there - place), turn.T @ turned)


class Body:
    """The arm's kinematics, ``CHAIN``, by Pinocchio: at 1 kHz, most of a test's time would go into NumPy's calls."""

    def __init__(self) -> None:
        self._model = pinocchio.Model()
        *frames, tool = (pinocchio.SE3(frame.rotation, frame.position) for frame in CHAIN.frames)
        last = 0
        for number, frame in enumerate(frames, 1):
            last = self._model.addJoint(last, pinocchio.JointModelRZ(), frame, f"joint{number}")
        self._tool = self._model.addFrame(pinocchio.Frame("tool", last, tool, pinocchio.OP_FRAME))
        self._data = self._model.createData()

    def pose(self, joints: np.ndarray) -> Pose:
        pinocchio.framesForwardKinematics(self._model, self._data, joints)
        place = self._data.oMf[self._tool]
        x, y, z = place.translation.tolist()
        a, b, c, d = pinocchio.Quaternion(place.rotation).coeffs().tolist()
        return Pose((x, y, z), (a, b, c, d) if d >= 0.0 else (-a, -b, -c, -d))

    def jacobian(self, joints: np.ndarray) -> np.ndarray:
        """Return ``(6, 7)``, in the base frame."""
        world = pinocchio.LOCAL_WORLD_ALIGNED
        return pinocchio.computeFrameJacobian(self._model, self._data, joints, self._tool, world)


class Robot:
    """Moves at 1 kHz, and says where it is: honestly, or as a test wants. What it is asked for is done at once.

    Args:
        config: of the arm.
        noise: of what it says, rad.
        way_ms: time that a state needs to the driver, and a torque back, from the beginning on.
    """

    def __init__(self, config: FrankaConfig, noise: float = 0.0, way_ms: int = 0) -> None:
        self.config, self.tool, self._body = config, tool_in_flange(), Body()
        self.now_ns = 1_000_000_000_000
        self.lie: Lie | None = None
        self.pace = 1.0  # of the time that it says, in which its computer lets it live
        self.silent = False
        self.late_ms = self._way_ms = way_ms
        self.stopped: list[int] = []  # when it was asked to
        self.top_speed = 0.0
        self.asked: list[str] = []
        self._random, self._noise = np.random.default_rng(0), noise
        self._joints, self._speeds = np.array(HOME_Q), np.zeros(7)
        self._torques, self._ms, self._lived = np.zeros(7), 5_000, 0.0
        self._mode = ""
        self._goal: TimedSetpoint | TimedJoints | None = None
        self._held: Pose | None = None
        self._first: FrankaReading | None = None
        self._way: deque[tuple[int, FrankaReading]] = deque()
        # What comes late to the robot, and by the robot's time what was sent for a state.
        self._way_back: deque[tuple[int, np.ndarray]] = deque()
        self._sent: dict[int, tuple[float, ...]] = {}
        self._trouble = ""
        self._motion: tuple[Future[str], np.ndarray] | None = None
        self._seen = self._said = self._reading()
        for _ in range(way_ms + 1 if way_ms else 0):  # until the first state has come
            self.live()

    # What the loop needs.

    def newest(self) -> FrankaReading:
        return self._said

    def trouble(self) -> str:
        return self._trouble

    def follow(self, joints: bool) -> Future[str]:
        self.asked.append(f"follow {joints}")
        self._mode, self._goal = "joints" if joints else "tool", None
        self._held = self._seen.pose
        self._newest_sent = np.array(self._said.torques)
        return done()

    def send(self, setpoint: TimedSetpoint | TimedJoints) -> None:
        self._goal = setpoint

    def stop(self) -> Future[str]:
        self.stopped.append(self.now_ns)
        self._mode = ""
        return done()

    def move(self, joints: tuple[float, ...], dynamics: Dynamics) -> Future[str]:
        self.asked.append("move")
        self._motion = Future(), np.array(joints)
        return self._motion[0]

    def end_move(self) -> None:
        assert self._motion is not None
        self.stopped.append(self.now_ns)
        self._motion[0].set_result("")
        self._motion = None

    def recover(self) -> Future[str]:
        self.asked.append("recover")
        self._trouble = ""
        return done()

    # What a test does.

    def fail(self, why: str) -> None:
        """Leave control by itself."""
        self._mode, self._trouble = "", why

    def tell(self, lie: Lie | None) -> None:
        self.lie, self._first = lie, None

    def pose(self) -> Pose:
        return self._body.pose(self._joints)

    def tool_speed(self) -> float:
        return float(np.linalg.norm((self._body.jacobian(self._joints) @ self._speeds)[:3]))

    def live(self) -> None:
        """Pass 1 ms."""
        self.now_ns += MS
        self._lived += self.pace
        if self._lived >= 1.0:
            self._lived -= 1.0
            self._ms += 1
            self._move()
        if self.silent:
            return
        self._seen = self._reading()
        self._way.append((self.now_ns + self.late_ms * MS, self._seen))
        while self._way and self._way[0][0] <= self.now_ns:
            said = self._way.popleft()[1]
            said = replace(said, stamp_ns=self.now_ns, steady_ns=self.now_ns, even_ns=self.now_ns)
            self._said = self._answered(said) if self._way_ms and self._mode else said

    def _answered(self, said: FrankaReading) -> FrankaReading:
        """Send torques for a state that has come, and say what was sent for it."""
        wanted = np.clip(self._commanded(said), -MOST_TORQUE, MOST_TORQUE)
        self._newest_sent = self._newest_sent + np.clip(wanted - self._newest_sent, -TORQUE_RATE, TORQUE_RATE)
        self._way_back.append((self.now_ns + self._way_ms * MS, self._newest_sent))
        self._sent[said.robot_ms + 1] = tuple(self._newest_sent.tolist())
        return replace(said, sent=self._sent.get(said.robot_ms))

    def _move(self) -> None:
        commanded = not self._mode or self._finite()
        if self._way_ms and self._mode:
            while self._way_back and self._way_back[0][0] <= self.now_ns:
                self._torques = self._way_back.popleft()[1]
        else:
            wanted = np.clip(self._commanded(self._seen), -MOST_TORQUE, MOST_TORQUE) if commanded else self._torques
            self._torques = self._torques + np.clip(wanted - self._torques, -TORQUE_RATE, TORQUE_RATE)
        self._speeds = self._speeds + 0.001 * self._torques / JOINT_KG_M2
        self._joints = self._joints + 0.001 * self._speeds
        self.top_speed = max(self.top_speed, self.tool_speed())

    def _finite(self) -> bool:
        """Whether a control law can use what the robot says; libfranka refuses what is no number."""
        return bool(np.isfinite((*self._seen.joints, *self._seen.joint_speeds, *self._seen.pose.position)).all())

    def _commanded(self, seen: FrankaReading) -> np.ndarray:
        """The torques of the impedance law, made of what the robot says, as franky makes them."""
        config = self.config
        joints, speeds = np.array(seen.joints), np.array(seen.joint_speeds)
        if self._motion is not None:
            ended, goal = self._motion
            if np.abs(goal - joints).max() < 0.002:
                self._motion = None
                ended.set_result("")
            return np.clip(60.0 * (goal - joints), -8.0, 8.0) - 16.0 * speeds
        if self._mode == "joints" and isinstance(self._goal, TimedJoints):
            stiffness, most = np.array(config.joint_stiffness), config.max_joint_torque
            error = np.clip(stiffness * (np.array(self._goal.positions) - joints), -most, most)
            return error + 2.0 * np.sqrt(stiffness) * (np.array(self._goal.velocities) - speeds)
        if self._mode == "tool" and self._held is not None:
            return self._tool_torques(joints, speeds, seen.pose)
        return -30.0 * self._speeds  # the robot's own brake

    def _tool_torques(self, joints: np.ndarray, speeds: np.ndarray, pose: Pose) -> np.ndarray:
        goal, config = self._goal, self.config
        place, rate = self._held.position, np.zeros(3)  # type: ignore[union-attr]
        if isinstance(goal, TimedSetpoint):
            place, rate = goal.position, np.array(goal.linear_velocity)
        jacobian = self._body.jacobian(joints)
        now = jacobian @ speeds
        clip = config.max_force / config.translational_stiffness
        error = np.clip(np.array(place) - np.array(pose.position), -clip, clip)
        pull = config.translational_stiffness * error
        pull += 2.0 * np.sqrt(config.translational_stiffness * MASS_KG) * (rate - now[:3])
        # As joint accelerations that give the tool this acceleration and no turn.
        wanted = np.concatenate([pull / MASS_KG, -30.0 * now[3:]])
        return jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + DAMPED, wanted) * JOINT_KG_M2

    def _reading(self) -> FrankaReading:
        noise = self._random.normal(0.0, self._noise, (2, 7)) if self._noise else np.zeros((2, 7))
        joints, speeds = self._joints + noise[0], self._speeds + 30.0 * noise[1]
        torques = tuple(self._torques.tolist())
        said = FrankaReading(
            self.now_ns,
            self.now_ns,
            self.now_ns,
            self._ms,
            tuple(joints.tolist()),
            tuple(speeds.tolist()),
            self._body.pose(joints),
            torques,
            1.0 if self._mode else 0.0,
            torques if self._mode else None,
        )
        if self.lie is not None:
            self._first = self._first or said
            said = self.lie(said, self._first, self._ms - self._first.robot_ms)
        return said


def done(result: str = "") -> Future[str]:
    future: Future[str] = Future()
    future.set_result(result)
    return future


class Ended(Exception):
    """The process has ended with a status."""


class Cell:
    """The robot, the loop that drives it, and the arm's end of memory and requests."""

    def __init__(self, config: FrankaConfig, noise: float = 0.0, way_ms: int = 0) -> None:
        self.robot = Robot(config, noise, way_ms)
        self.memory = DriverMemory(shared_memory(MEMORY_SIZE))
        self.requests, theirs = Pipe()
        self.loop: FrankaLoop | None = FrankaLoop(config, self.robot, self.memory, theirs)
        self.status: int | None = None

    @property
    def now_s(self) -> float:
        return self.robot.now_ns / 1e9

    @property
    def state(self) -> DriverState:
        found = self.memory.read_state()
        assert found is not None
        return found

    def run(self, seconds: float, each: Callable[[], Any] = lambda: None) -> None:
        """Pass time; ``each`` is called every 10 ms."""
        for ms in range(round(1000 * seconds)):
            if ms % 10 == 0:
                each()
            self.robot.live()
            if self.loop is not None and self.robot.now_ns % PERIOD_NS == 0:
                try:
                    self.loop.tick(self.robot.now_ns)
                except Ended as end:
                    # The connection is gone: the robot brakes by itself.
                    self.loop, self.status = None, int(str(end))
                    self.robot.tell(None)
                    self.robot.stop()
                    self.robot.silent = True

    def again(self, *others: Any) -> tuple[Any, ...]:
        """Return a copy that goes on from here on its own, and copies of what refers to it."""
        assert self.loop is not None
        requests, theirs = Pipe()
        apart = {self.memory: DriverMemory(shared_memory(MEMORY_SIZE)), self.requests: requests}
        apart[self.loop._requests] = theirs
        apart[self.loop._waiting] = select.poll()
        apart[self.loop._waiting].register(theirs, select.POLLIN)
        for silence in (self.loop._silence, self.loop._watch._silence):
            apart[silence._lock] = threading.Lock()
        return copy.deepcopy((self, *others), {id(own): new for own, new in apart.items()})

    def ask(self, request: DriverRequest, *arguments: object) -> object:
        self.requests.send((request, *arguments))
        self.run(0.02)
        assert self.requests.poll(), "no answer"
        return self.requests.recv()


def _end(status: int) -> None:
    raise Ended(status)


@contextmanager
def ending() -> Iterator[None]:
    """The end of the process becomes an exception."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_loop, "os", SimpleNamespace(_exit=_end))
        yield


class Swing:
    """Set-points that swing along y at up to ``speed``: of the tool, or of joint 1, every 10 ms."""

    def __init__(self, cell, joints, speed=0.25):
        self._cell, self._joints = cell, joints
        self._pose, self._begin = cell.robot.pose(), cell.now_s
        self._rate, self._speed = 2.5, speed

    def __call__(self):
        t = self._cell.now_s - self._begin
        reach = self._speed / self._rate
        way, speed = reach * (1 - np.cos(self._rate * t)), self._speed * np.sin(self._rate * t)
        now = self._cell.robot.now_ns
        if self._joints:
            there = tuple(float(q) for q in np.array(HOME_Q) + way * np.array([2.0, 0, 0, 0, 0, 0, 0]))
            self._cell.memory.setpoint.write(TimedJoints(now, there, (2.0 * speed, 0, 0, 0, 0, 0, 0)))
            return
        x, y, z = self._pose.position
        setpoint = TimedSetpoint(now, (x, y + way, z), self._pose.quaternion, (0.0, speed, 0.0), ZERO)
        self._cell.memory.setpoint.write(setpoint)
