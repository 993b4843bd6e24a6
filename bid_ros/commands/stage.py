"""``bid up SYSTEM --stage``: a stage of a robot's first motions: asks, moves, measures, says what may follow."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import BidError
from bid_ros.recording.events import read_run
from bid_ros.system.folder import POLICY, System
from bid_ros.system.run import RunArguments
from bid_ros.system.stages import ROUND, STAGES, limits_hash, note_stage, stage_number, stage_text
from bid_ros.tasks.base import NOT_JUDGED

LAG_S: Final = 0.2  # that the tool may come after its set-points
OFF_MM: Final = 10.0  # that it may be off besides, p99
RESTING_MM: Final = 10.0  # that it may be off its set-point while both rest
MOVED_MM: Final = 10.0  # that the set-point moves at least where the tool shall move
STILL: Final = 0.002  # m/s of a set-point at rest
GRIPPED: Final = 0.5  # of the gripper's range, that it moves at least
ALONE_S: Final = 180.0  # for a motion without a policy: across a workspace at a low max_speed
PREPARES: Final = "episode"  # source of the way to a start, which shows nothing of the motion
SET_BY_STAGE: Final = ("slow", "shadow", "takeover", "human", "styles", "device_settings", "record")


def run_stage(
    system: System, arguments: RunArguments, asked: str, as_json: bool, start: Callable[[System, RunArguments], int]
) -> int:
    """Ask at a robot, run one stage, record what was measured. Return 0 if it is passed, else 1, or 3 after a stop.

    Args:
        system, arguments: of the run.
        asked: number of the stage, or ``next``.
        as_json: print the result on standard output.
        start: runs a system, and returns the exit status of the run.

    Raises:
        BidError: a stage before it is not passed, an argument is given that a stage sets itself, nobody can answer, or
            the answer is not yes; nothing has moved.
    """
    from bid_ros.teleop.stage import start_of

    address, driver = arguments.robot_ip, arguments.driver or system.settings.driver
    _check_arguments(arguments)
    system.check(twin=not address)
    number, files = stage_number(system, address, asked, driver), limits_hash(system)
    text = stage_text(number, driver, start_of(system.task).tolist())
    where = f"robot {address}" if address else "its twin"
    print(f"stage {number} of {len(STAGES)}: {system.task.robot}, {where}: {text}", file=sys.stderr)
    if address:
        ask("keep a hand at the emergency stop. May it move?")
    given = stage_arguments(system, arguments, number)
    status = start(system, given)
    out = Path(arguments.out)
    result: dict[str, Any] = (
        measured(out, number, system) if (out / "bag").exists() else {"problems": ["there is no recording"]}
    )
    problems = result["problems"]
    run = read_run(out)
    if (reason := _reason(run)) or status:
        problems.append(f"the run ended with status {status}: {reason or 'see the logs'}")
    if given.driver != POLICY and _unended(run):  # a policy may hover until its time is over
        problems.append(f"the motion did not come to its end within {ALONE_S:g} s")
    if limits_hash(system) != files:
        problems.append("robot.yaml or the limits of task.yaml were changed meanwhile")
    if not problems and address and not _did_that():
        problems.append("a person does not say that it did that and nothing else")
    result["passed"] = not problems
    note_stage(system, address, number, result, driver)
    print(json.dumps(result) if as_json else _told(number, result))
    return 0 if result["passed"] else status or 1


def _check_arguments(arguments: RunArguments) -> None:
    """Raise BidError if an argument is given that a stage sets itself: the arm would do something else than asked."""
    default = RunArguments()
    for name in SET_BY_STAGE:
        if (given := getattr(arguments, name)) != getattr(default, name):
            raise BidError(f"{name} is {given!r}, but a stage says itself what moves, and how fast; leave it out")


def stage_arguments(system: System, arguments: RunArguments, number: int) -> RunArguments:
    """Return the arguments of the run of a stage."""
    stage, policy = STAGES[number - 1], (arguments.driver or system.settings.driver) == POLICY
    common = replace(
        arguments, episodes=1, record=True, unstaged=True, slow=1.0, human=False, takeover="", shadow=False
    )
    if stage.motion == ROUND and policy:
        return replace(common, driver=POLICY, slow=stage.slow)
    given = f"{{motion: {stage.motion}, speed: {stage.slow}}}"
    return replace(common, driver="stage", device_settings=given, styles=(), moving=0.0, timeout=ALONE_S)


def measured(out: Path, number: int, system: System) -> dict[str, Any]:
    """Return what the recording of a stage says of tracking, latency and gripper, and what of it is a problem."""
    from bid_ros.core.percentiles import percentiles
    from bid_ros.core.poses import pose_arrays
    from bid_ros.core.topics import ARM_STATUS
    from bid_ros.recording.reader import BagReader
    from bid_ros.teleop.stage import start_of
    from bid_ros.views.lag import followed_report, read_followed

    ages: list[float] = []
    places, wanted, speeds, widths, driven = ([] for _ in range(5))
    with BagReader(out / "bag") as reader:
        for item in reader.messages((ARM_STATUS,)):
            message = item.message
            if message.mode == message.TRACKING:
                ages.append(1e3 * message.command_age)
                places.append(pose_arrays(message.tool)[0])
                wanted.append(pose_arrays(message.reference)[0])
                driven += [wanted[-1]] * (message.source != PREPARES)
                speeds.append(float(np.linalg.norm(message.reference_twist[:3])))
            widths += [float(message.gripper_width)] * math.isfinite(message.gripper_width)
    off = 1e3 * np.linalg.norm(np.reshape(places, (-1, 3)) - np.reshape(wanted, (-1, 3)), axis=1)
    result = {
        **followed_report(read_followed(out / "bag")),
        "resting_mm": percentiles(off[np.array(speeds) < STILL]),
        "command_age_ms": percentiles(ages),
        "moved_mm": 1e3 * float(np.ptp(np.reshape(driven, (-1, 3)), axis=0).max()) if driven else 0.0,
        "gripped_mm": 1e3 * float(np.ptp(widths)) if widths else None,
        "at_start": bool(wanted) and float(np.linalg.norm(wanted[-1] - start_of(system.task))) < MOVED_MM / 1e3,
    }
    return {**result, "problems": _problems(result, STAGES[number - 1].motion, system)}


def _problems(result: dict[str, Any], motion: str, system: System) -> list[str]:
    limits, found = system.task.limits, []
    if motion == "gripper":
        least = 1e3 * GRIPPED * (limits.gripper_max - limits.gripper_min)
        moved = result["gripped_mm"] or 0.0  # nothing is measured of a gripper that is silent
        if moved < least and system.task.columns("gripper") is not None:
            found.append(f"the gripper moved {moved:.0f} mm; at least {least:.0f} mm were asked for")
    elif result["moved_mm"] < MOVED_MM and not (motion == "home" and result["at_start"]):
        found.append(f"the set-point moved {result['moved_mm']:.0f} mm; the arm was hardly driven")
    if (rest := result["resting_mm"]["max"]) is not None and rest > RESTING_MM:
        found.append(f"at rest the tool was {rest:.0f} mm off its set-point; valid is up to {RESTING_MM:g} mm")
    if result["lag_s"] is not None and result["lag_s"] > LAG_S:
        found.append(f"the tool lags by {result['lag_s']:.2f} s; valid is up to {LAG_S:g} s")
    if result["off_mm"] is not None and result["off_mm"]["p99"] > OFF_MM:
        found.append(f"the tool was {result['off_mm']['p99']:.0f} mm off its path (p99); valid is up to {OFF_MM:g} mm")
    return found


def _told(number: int, result: dict[str, Any]) -> str:
    """Return the result for a person."""
    from bid_ros.views.lag import followed_line

    ages = "  ".join(f"{name} {value:.0f}" for name, value in result.get("command_age_ms", {}).items() if value)
    lines = [f"tracking     {followed_line(result)}"] if "lag_s" in result else []
    lines += [f"command age  {ages} ms"] if ages else []
    if "gripped_mm" in result:
        gripped = result["gripped_mm"]
        lines.append(f"gripper      {'none is measured' if gripped is None else f'moved {gripped:.0f} mm'}")
    lines += [f"problem      {item}" for item in result["problems"]] or ["contact      none that stopped the arm"]
    if not result["passed"]:
        return "\n".join([*lines, f"stage {number} is not passed; mend this, and do it again: --stage {number}"])
    after = f"stage {number + 1} may follow: --stage next" if number < len(STAGES) else "full speed is allowed"
    return "\n".join([*lines, f"stage {number} is passed; {after}"])


def _reason(run: Mapping[str, Any] | None) -> str:
    """Return what stopped the run, or its episode; empty: nothing did. A run goes on after a stop that was reset."""
    if run is None:
        return "there is no run.json"
    ended = run.get("ended") or {}
    return str(run.get("safety_stop") or ended.get("outcome", ""))


def _unended(run: Mapping[str, Any] | None) -> bool:
    """Whether the time of a motion was over before it ended."""
    results = (run or {}).get("results") or [{}]
    return bool(results[-1].get("outcome") == NOT_JUDGED)


def ask(question: str) -> None:
    """Ask at a robot whether the arm may move. Raises BidError if nobody can answer, or the answer is not yes."""
    if not sys.stdin.isatty():
        raise BidError("nobody can answer here whether the arm may move; valid is a terminal")
    if not _yes(question):
        raise BidError("not confirmed, so nothing moves")


def _did_that() -> bool:
    """Ask whether a stage went well. Who leaves the question does not say so: the stage must not count."""
    try:
        return _yes("did it do that, and touch nothing?")
    except KeyboardInterrupt:
        return False


def _yes(question: str) -> bool:
    try:
        return input(f"{question} yes, or anything else: ").strip().lower() == "yes"
    except EOFError:  # Ctrl-D, or a terminal that is gone
        return False
