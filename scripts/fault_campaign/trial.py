"""One trial: a system starts, its arm moves, a fault is injected, and one line says what came of it."""

from __future__ import annotations

import random
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_msgs.msg import EpisodeEvent
from fault_campaign.course import HOLD_S, REST_S, WIDTH, course, read_trace
from fault_campaign.fault import Fault, Robot, Scene
from fault_campaign.judging import Outcome, judge, lost, reasons_between, told_before, told_by_run
from fault_campaign.system import SUPERVISOR, Plan, RunningSystem
from fault_campaign.witness import Witness

READY_S: Final = 150.0  # for a system to start and its arm to move, beside whatever else the computer does
MOVES: Final = 0.06  # m/s of the tool, from which on a fault is injected
STEADY_S: Final = 0.15
WATCH_S: Final = 1.5 + REST_S + HOLD_S
FIRST_DOMAIN: Final = 1
DOMAINS: Final = 19  # tests have those above; a killed node stays in its domain's graph for 20 s
ALONE_S: Final = 25.0  # for a system whose supervisor is gone to end by itself
Row = dict[str, Any]


def run_trial(fault: Fault, robot: Robot, folder: Path, repeat: int, seed: int) -> Row:
    """Run one trial and return its row. What it wrote stays in ``folder``."""
    folder.mkdir(parents=True)
    trace, chance = folder / "trace.bin", random.Random(f"{seed} {fault.name} {robot.name} {repeat}")
    arguments = {"episodes": 20, "seed": 100 + chance.randrange(800), "out": str(folder / "out")}
    plan = Plan(robot.name, arguments, str(trace), domain=FIRST_DOMAIN + int(time.time()) % DOMAINS)
    fault.prepare(plan, robot)
    witness = Witness(plan.domain)
    system = RunningSystem(plan, folder)
    scene = Scene(robot, system, witness, chance, folder)
    row: Row = {"fault": fault.name, "group": fault.group, "what": fault.what, "task": robot.name, "repeat": repeat}
    row |= {"date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit()}
    try:
        if problem := await_motion(system, witness, trace, robot):
            return {**row, "problem": problem}
        row |= _measure(fault, robot, scene)
    finally:
        system.look()
        system.end()
        witness.close()
        fault.clean(folder)
    return row


def _commit() -> str:
    """Return which commit is checked out, as the lines of a campaign outlive it; empty: nobody can tell."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip()


def await_motion(system: RunningSystem, witness: Witness, trace: Path, robot: Robot) -> str:
    """Wait until an episode runs and the tool moves; return one sentence if it never does."""
    end, moving_since = time.monotonic() + READY_S, None
    while time.monotonic() < end:
        if system.front.poll() is not None:
            return f"the system ended with status {system.front.returncode} before its arm moved"
        system.look()
        fast = witness.tracks and newest_speed(trace, robot) > MOVES
        moving_since = (moving_since or time.monotonic()) if fast else None
        if moving_since is not None and time.monotonic() - moving_since > STEADY_S:
            return ""
        time.sleep(0.03)
    return f"the arm did not move within {READY_S:g} s"


def newest_speed(trace: Path, robot: Robot) -> float:
    """Return the speed of the tool in the last tenth of a second of a trace, m/s."""
    size, row = trace.stat().st_size if trace.exists() else 0, 8 * WIDTH
    if size < 21 * row:
        return 0.0
    with trace.open("rb") as file:
        file.seek((size // row - 21) * row)
        rows = np.frombuffer(file.read(21 * row)).reshape(-1, WIDTH)
    passed = rows[-1, 1] - rows[0, 1]
    far = float(np.linalg.norm(robot.tool(rows[-1, 2:]) - robot.tool(rows[0, 2:])))
    return far / passed if passed > 0 else 0.0


def _measure(fault: Fault, robot: Robot, scene: Scene) -> Row:
    """Inject the fault, watch, end the system, and return what was measured."""
    system, witness = scene.system, scene.witness
    before = told_before(system.out)
    begun, wall = time.monotonic(), time.time()
    since = fault.inject(scene) or begun
    time.sleep(WATCH_S)
    watched = time.monotonic()
    for undo in reversed(scene.undo):
        undo()
    alone = f"{SUPERVISOR} killed" in fault.what  # it ends by itself
    end_s, left = system.await_end(ALONE_S) if alone else system.end()
    limits = robot.task.limits
    corners = np.asarray(limits.workspace_min), np.asarray(limits.workspace_max)
    found = course(read_trace(Path(system.plan.trace), robot.tool), since, watched, *corners)
    ended = time.monotonic() if alone else watched
    reasons = reasons_between(witness.said, begun, ended, since) + told_by_run(system.out, wall + since - begun, before)
    resets = [at - since for at, kind in witness.events if at > begun and kind == EpisodeEvent.PREPARE]
    outcome = Outcome(reasons, lost(system.out), left, round(end_s, 2), system.front.returncode)
    return judge(fault, robot, found, outcome, resets)
