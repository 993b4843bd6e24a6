"""The stops of ``bid accept``: a moving arm loses its cable, its power or a node; its recording says how it stopped."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.stage import ask
from bid_ros.core.errors import BidError
from bid_ros.recording.events import FILE as EVENTS
from bid_ros.system.folder import System
from bid_ros.system.run import RunArguments
from bid_ros.system.stages import STAGES

KILL: Final = "kill"
KILLED: Final = "safety"  # its end leaves the arm node, whose states show the stop
STOPS: Final[Mapping[str, str]] = {
    "cable": "pull the network cable out of the robot",
    "emergency_stop": "press the emergency stop",
    KILL: "type in another terminal: kill -9 {pid}",
}
"""What a person does, by the name of the stop."""
SPEED: Final = 0.3  # factor of the speed of the round
ROUNDS: Final = 100
START_S: Final = 120.0
PERSON_S: Final = 120.0  # for a person to do it; in the twin for the arm to notice
REST_S: Final = 1.0  # for which the rest is recorded
LOOK_S: Final = 0.05
MOST_REST_S: Final = 1.0  # from when it is done, or noticed, to rest
LEAST_SPEED: Final = 0.005  # m/s


def try_stop(system: System, arguments: RunArguments, name: str) -> dict[str, Any]:
    """Drive the arm around its rectangle, stop it, and return how it stopped, with ``problems``.

    Args:
        system: whose arm.
        arguments: address of the robot and folder of the run.
        name: of the stop, one of :data:`STOPS`. In a twin this does it, at a robot a person does.

    Raises:
        BidError: nobody can answer, or the answer is not yes; nothing has moved.
    """
    from bid_ros.views.stopping import read_stop

    out = Path(arguments.out)
    if arguments.robot_ip:
        text = STOPS[name].format(pid="(its number is said then)")
        ask(f"stop '{name}': the tool goes around a rectangle of 12 by 4 cm; while it moves, {text}. May it move?")
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_suffix(".log").open("wb") as said:
        run = subprocess.Popen(_command(system, arguments), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            done_ns = _stopped(run, out, name, not arguments.robot_ip)
        except BidError as error:
            return {"problems": [str(error)]}
        finally:
            if run.poll() is None:
                run.send_signal(signal.SIGINT)
            run.wait()
    if not (out / "bag").exists():
        return {"problems": ["there is no recording"]}
    found = read_stop(out / "bag", done_ns)
    return {**found, "problems": stop_problems(found)}


def stop_problems(found: Mapping[str, Any]) -> list[str]:
    """Return what of a stop, as :func:`bid_ros.views.stopping.read_stop` has it, is not as it should be."""
    if not found["reason"]:
        return ["nothing stopped the arm"]
    if found["speed"] < LEAST_SPEED:
        return ["the arm rested when it was stopped, so this shows nothing: try it again"]
    rest_s = found["rest_s"]
    late = rest_s is not None and rest_s > MOST_REST_S
    return [f"the tool rested after {rest_s:.2f} s; valid is up to {MOST_REST_S:g} s"] if late else []


def _command(system: System, arguments: RunArguments) -> Sequence[str]:
    motion = ["--driver", "stage", "--device-settings", f"{{motion: {STAGES[-1].motion}, speed: {SPEED}}}"]
    words = ["--moving", "0", "--episodes", str(ROUNDS), "--out", arguments.out]
    words += ["--robot-ip", arguments.robot_ip] if arguments.robot_ip else []
    return [sys.executable, "-m", "bid_ros.cli", "up", str(system.folder), *motion, *words]


def _stopped(run: "subprocess.Popen[bytes]", out: Path, name: str, twin: bool) -> int | None:
    """Stop the moving arm, and wait until that is recorded. Return when it was done, ns; None: a person did it."""
    if not _until(run, out, START_S, lambda event: (event["kind"], event.get("phase")) == ("episode", "start")):
        raise BidError(f"the arm was not driven within {START_S:g} s: see {out.with_suffix('.log')}")
    pid = node_process(out, KILLED)
    done_ns = None
    if twin:
        from bid_ros.nodes.client import harm_moving

        done_ns = harm_moving("", pid if name == KILL else name, START_S)
    else:
        print(f"now, while it moves: {STOPS[name].format(pid=pid)}", file=sys.stderr, flush=True)
    if name == KILL:  # the run ends by itself
        _until(run, out, PERSON_S, lambda _: False)
    elif _until(run, out, PERSON_S, lambda event: event["kind"] == "stop"):
        time.sleep(REST_S)
    return done_ns


def _until(
    run: "subprocess.Popen[bytes]", out: Path, limit_s: float, seen: Callable[[Mapping[str, Any]], bool]
) -> bool:
    """Wait for an event of a run; return False if the run ends before, or the time is over."""
    end = time.monotonic() + limit_s
    while run.poll() is None and time.monotonic() < end:
        text = (out / EVENTS).read_text() if (out / EVENTS).exists() else ""
        if any(seen(json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines()):
            return True
        time.sleep(LOOK_S)
    return False


def node_process(out: Path, node: str) -> int:
    """Return the id of the process of a node, by the parameter file of its run. Raises BidError if it does not run."""
    mark = str(out / "parameters" / f"{node}.yaml").encode()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if mark in words:
            return int(file.parent.name)
    raise BidError(f"the {node} node of the run in {out} does not run")
