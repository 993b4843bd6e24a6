"""Probes of the robot, or of what its twin needs. A robot is only asked whether it listens, and what it needs."""

import math
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import BidError, CameraError
from bid_ros.core.task import Task
from bid_ros.robots.registry import ROBOTS
from bid_ros.system.check.finding import CheckFinding, tried

ANSWER_S: Final = 2.0
FELT_N: Final = 5.0  # of which nothing is said; a contact is told by 20 N, to begin with
GRAVITY: Final = 9.81  # m/s^2
_NEEDED: Final = "install what the twin needs: franky-sim, mujoco"
_NAMES: Final = (
    "correct name and shape in task.yaml, or name another source in the section twin of cameras.yaml, such as a file"
)


def robot_finding(name: str, config: Any) -> CheckFinding:
    """Return which ports of a robot answer at its address, how fast, and what it says that it still needs."""
    address: str = config.address
    ports, taken_ms = ROBOTS.find(name).ports, []
    silent: dict[int, str] = {}
    for port in ports:
        begun = time.monotonic()
        try:
            with socket.create_connection((address, port), timeout=ANSWER_S):
                taken_ms.append(1e3 * (time.monotonic() - begun))
        except OSError as error:
            silent[port] = error.strerror or str(error)
    what = f"robot {address}"
    if not taken_ms:
        why = next(iter(silent.values()), f"robot '{name}' names no port")
        advice = "switch the robot on, check cable and address, let it be controlled from outside (FCI, remote control)"
        return CheckFinding(what, "fail", f"no port of {', '.join(map(str, ports))} answers: {why}", advice)
    shown = f"ports {', '.join(str(port) for port in ports if port not in silent)} answer in {max(taken_ms):.1f} ms"
    if silent:
        missing = ", ".join(f"{port} does not ({why})" for port, why in silent.items())
        return CheckFinding(
            what, "warn", f"{shown}, {missing}", "look what serves it: it may be a gripper that is not there"
        )
    needs = ROBOTS.find(name).unready(config)
    return CheckFinding(what, "warn", shown, needs) if needs else CheckFinding(what, "ok", shown)


def payload_finding(name: str, config: Any) -> CheckFinding | None:
    """Return whether a robot's compensation of gravity fits its payload; None: it does not tell its torques.

    Args:
        name: of a robot that answers.
        config: its configuration.
    """
    measure = ROBOTS.find(name).external_force
    if measure is None:
        return None
    mass = float(config.payload_mass)
    try:
        x, y, z = measure(config)
    except BidError as error:
        return CheckFinding("payload", "warn", f"not measured: {error}", "end what uses the robot, and let it rest")
    shown = f"[{x:.1f}, {y:.1f}, {z:.1f}] N are felt at rest beside payload_mass {mass:g} kg"
    off, sideways = math.hypot(x, y, z), math.hypot(x, y)
    if off <= FELT_N:
        return CheckFinding("payload", "ok", shown)
    if sideways > abs(z):
        return CheckFinding("payload", "warn", shown, "look what touches the arm")
    fits = mass - z / GRAVITY
    advice = "Desk has a hand that is too heavy" if fits < 0 else f"payload_mass {fits:.2f} kg would fit, if that is it"
    return CheckFinding("payload", "warn", shown, f"look what it holds and touches, and what hand Desk has; {advice}")


def twin_findings(task: Task, cameras: Sequence[str]) -> Iterator[CheckFinding]:
    """Yield whether the twin of a task can be made, and how long its cameras take to render.

    Args:
        task: of the twin.
        cameras: names of those that the twin renders.
    """
    yield tried("twin", lambda: _compiled(task), _NEEDED)
    if cameras:
        yield _rendering(task, cameras)


def _compiled(task: Task) -> str:
    model = _model(task)
    return f"{task.robot} over a scene of kind {task.kind}: {model.nbody} bodies, {model.nq} coordinates"


def _rendering(task: Task, cameras: Sequence[str]) -> CheckFinding:
    """Return how long the twin's cameras take to render, or which library they lack."""
    from bid_ros.sim.offscreen import RenderingError

    try:
        return CheckFinding("rendering", "ok", _rendered(task, cameras))
    except RenderingError as error:
        return CheckFinding("rendering", "fail", error.problem, error.advice)
    except CameraError as error:  # the twin lacks a camera of that name, or images of that size
        return CheckFinding("rendering", "fail", str(error), _NAMES)
    except BidError as error:
        return CheckFinding("rendering", "fail", str(error), _NEEDED)


def _rendered(task: Task, cameras: Sequence[str]) -> str:
    model = _model(task)
    from bid_ros.sim.renderer import SceneRenderer

    height, width, _ = task.cameras[0].shape
    renderer = SceneRenderer(model, width, height, cameras)
    state = model.qpos0, np.zeros((model.nmocap, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (model.nmocap, 1))
    try:
        renderer.render(*state)
        begun = time.monotonic()
        renderer.render(*state)
        taken_ms = 1e3 * (time.monotonic() - begun)
    finally:
        renderer.close()
    return f"{len(cameras)} images of {width}x{height} px in {taken_ms:.0f} ms"


def _model(task: Task) -> Any:
    """Return the twin's compiled scene; BidError if it cannot be made."""
    try:
        from bid_ros.tasks.twins import scene_model

        return scene_model(task)
    except ImportError as error:
        raise BidError(f"a library does not import: {error}") from error
