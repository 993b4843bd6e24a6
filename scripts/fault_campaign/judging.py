"""Holds what a trial showed against the bars that every fault has."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.recording.reader import BagReader
from fault_campaign.course import Course
from fault_campaign.fault import Fault, Robot
from fault_campaign.witness import Said

REST_LIMIT_S: Final = 0.5  # after the deadline
REASON_LIMIT_S: Final = 1.0  # after the fault, or after its deadline where that is later
SLACK: Final = 1.02  # of the limit of speed: the physics of a twin is no exact follower
PAUSES_S: Final = 2.0  # after the fault; an arm that rests later may have reached what it moved to
LEAST: Final = 0.05  # m/s, below which no speed is too fast
EDGE: Final = 0.01  # m outside the workspace; the tool lies that far beside its set-point
Row = dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """Why something stopped.

    Attributes:
        where: topic or file; after_s: s after the fault; text: of the reason.
        stopped: it tells of a latched stop, a fault, or the end of the run.
    """

    where: str
    after_s: float
    text: str
    stopped: bool


@dataclass(frozen=True)
class Outcome:
    """What a trial showed, apart from what the arm did.

    Attributes:
        reasons: what was said after the fault.
        lost: one word for each thing that was lost.
        left: names of processes that outlived the run and had to be killed.
        end_s: s until the last process had ended.
        status: exit status of the front end.
    """

    reasons: list[Reason]
    lost: list[str]
    left: list[str]
    end_s: float
    status: int | None


def reasons_between(said: list[Said], begun: float, ended: float, since: float) -> list[Reason]:
    """Return the reasons that nodes gave from an instant of the steady clock on, until another, timed from ``since``.

    Some may be before it, where a fault took effect later than it was begun. A node that is asked to end says so, too:
    that is no reason for a stop.
    """
    return [
        Reason(item.where, round(item.at - since, 3), item.text, item.stopped)
        for item in said
        if begun <= item.at <= ended and item.text
    ]


def told_before(out: Path) -> int:
    """Return the number of stops that a run has noted so far."""
    try:
        return len(json.loads((out / "run.json").read_text())["stops"])
    except (OSError, ValueError):
        return 0


def told_by_run(out: Path, wall: float, before: int = 0) -> list[Reason]:
    """Return the reasons in a run's ``run.json``, but for the first stops, which were ``before`` the fault.

    ``wall`` is the wall time of the fault in s. When each was written is not in the file, so all count as late as its
    last change.
    """
    path = out / "run.json"
    try:
        run = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    after = round(path.stat().st_mtime - wall, 3)
    found = [run["ended"]] if run["ended"] else []
    stops = [stop["outcome"] for stop in run["stops"][before:]] + [ended["outcome"] for ended in found]
    told = [Reason("run.json", after, text, True) for text in stops if text != "aborted: shut down"]
    told += [Reason("run.json", after, pause["reason"], False) for pause in run.get("pauses", [])]
    return told if after >= 0 else []


def lost(out: Path) -> list[str]:
    """Return what a run lost: its results, its bag, or the bag's last part."""
    found = [] if (out / "run.json").exists() else ["run.json"]
    if not (out / "bag").exists():
        return [*found, "bag"]
    try:
        with BagReader(out / "bag") as reader:
            if not any(True for _ in reader.messages(["/arm/status"])):
                found.append("every arm status")
            if not reader.was_complete:
                found.append("index of the bag")
    except BidError as error:
        found.append(f"bag ({error})")
    return found


def judge(fault: Fault, robot: Robot, found: Course, outcome: Outcome, resets: list[float]) -> Row:
    """Return what was measured, and a sentence for each bar that was missed; ``paced``: those that a slow twin excuses.

    Args:
        fault, robot: of the trial.
        found: what the arm did.
        outcome: what else it showed.
        resets: s until the run prepared an episode again, after which the arm may move.
    """
    deadline, limit = fault.deadline(robot), robot.task.limits.max_speed
    again = None if any(reset < (found.again_s or 0.0) for reset in resets) else found.again_s
    stops = [item for item in outcome.reasons if item.stopped]
    first = min(stops, key=lambda item: item.after_s, default=None)
    wrong, paced = [], []  # paced: those of times and speeds, which a slow twin excuses
    if deadline is not None and not fault.gone:
        late, still = _unrest(found, deadline, again)
        paced += late
        wrong += [*late, *still]
    if deadline is not None and (first is None or first.after_s > max(REASON_LIMIT_S, deadline + REASON_LIMIT_S)):
        paced += [] if first is None else [f"a reason after {first.after_s:.2f} s only"]
        wrong += paced[-1:] if first is not None else ["no reason"]
    if deadline is None and not fault.may_stop and first is not None:
        wrong.append(f"stopped: {first.text}")
    rests = found.rest_s is not None and found.rest_s < PAUSES_S and again is None
    if deadline is None and fault.may_stop and rests and not outcome.reasons:
        wrong.append("at rest without a reason")
    if found.peak > SLACK * limit:
        paced.append(f"{found.peak:.2f} m/s; the limit is {limit:g}")
        wrong += paced[-1:]
    if fault.faster and found.peak > max(fault.faster * found.before, LEAST):
        paced.append(f"{found.peak / max(found.before, 1e-3):.1f} times as fast as before")
        wrong += paced[-1:]
    if found.outside > EDGE:
        wrong.append(f"{1000 * found.outside:.0f} mm outside the workspace")
    if outcome.left:
        wrong.append(f"left running: {', '.join(outcome.left)}")
    return {
        "deadline_s": deadline,
        **{name: value if value is None else round(value, 4) for name, value in asdict(found).items()},
        "reason_s": None if first is None else first.after_s,
        **asdict(outcome),
        "wrong": wrong,
        "paced": paced,
    }


def _unrest(found: Course, deadline: float, again: float | None) -> tuple[list[str], list[str]]:
    """Return what is wrong with the time to rest, and with the rest itself."""
    if found.rest_s is None:
        return [], ["not at rest"]
    late = found.rest_s - deadline
    tardy = [f"at rest {late:.2f} s after the deadline"] if late > REST_LIMIT_S else []
    return tardy, [] if again is None else [f"moved again after {again:.2f} s"]
