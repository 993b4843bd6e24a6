"""Stages: how a robot comes from its first motion to full speed, and the record of them in a system's folder."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.core.files import replace_text
from bid_ros.core.settings import read_yaml
from bid_ros.system.folder import POLICY, System
from bid_ros.system.run import RunArguments

FILE: Final = "stages.json"
TWIN: Final = "twin"
NEXT: Final = "next"
ROUND: Final = "round"
FIRST: Final = 0.1
"""Factor of the speed that needs no stage."""
LIMITS: Final = ("start", "tool_shape", "limits")
"""Sections of ``task.yaml`` that count: another one asks for the stages anew."""


@dataclass(frozen=True)
class StageOfMotion:
    """A stage.

    Attributes:
        motion: of the device ``stage``; with a policy, a ``round`` is an episode of the policy instead.
        text: what moves, for the person who is asked.
        slow: factor of the speed, which a robot that has passed the stage may have from then on.
    """

    motion: str
    text: str
    slow: float = FIRST


STAGES: Final = (
    StageOfMotion("gripper", "the gripper opens, closes and opens; the arm holds"),
    StageOfMotion("axes", "the gripper opens, the tool goes 2 cm along x, y and z, and back each time"),
    StageOfMotion("home", "the gripper opens, the tool goes to the middle of the start box {} and points down"),
    StageOfMotion(ROUND, "{} at 0.1 of its speed", 0.1),
    StageOfMotion(ROUND, "{} at 0.3 of its speed", 0.3),
    StageOfMotion(ROUND, "{} at full speed", 1.0),
)
"""All stages; their numbers are from 1 on."""
BY_POLICY: Final = "one episode of the policy, before which the gripper opens and the arm goes to its start,"


def limits_hash(system: System) -> str:
    """Return the hash of what the stages tried: ``robot.yaml``, and the limits, start and tool of ``task.yaml``.

    Comments do not count, nor does the section of the twin. Raises BidError if a file is missing or no YAML.
    """
    robot, task = (read_yaml(system.file(name), name) for name in ("robot.yaml", "task.yaml"))
    counted = {name: value for name, value in robot.items() if name != TWIN}
    content = [counted, {name: task.get(name) for name in LIMITS}]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class StageRecord:
    """What a robot has passed.

    Attributes:
        passed: number of stages in a row, under the files of now. For a policy a round without one does not count.
        changed: the files have changed since.
    """

    passed: int
    changed: bool = False

    @property
    def slow(self) -> float:
        """Largest factor of the speed without another stage."""
        return max([FIRST, *(stage.slow for stage in STAGES[: self.passed])])


def read_record(system: System, address: str, driver: str = "") -> StageRecord:
    """Return what the robot at an address has passed; empty: the twin.

    Args:
        system, address: whose record.
        driver: that is to drive. A policy counts no round that the tool went without one.

    Raises:
        BidError: the file is damaged.
    """
    found = _read(system).get(address or TWIN)
    if found is None:
        return StageRecord(0)
    if found["hash"] != limits_hash(system):
        return StageRecord(0, changed=True)
    stages = found["stages"]
    others = (n for n, item in enumerate(stages) if item["motion"] == ROUND and item.get("driver") != POLICY)
    return StageRecord(next(others, len(stages)) if driver == POLICY else len(stages))


def stage_results(system: System, address: str) -> list[Mapping[str, Any]]:
    """Return what was measured in each stage that is passed, and in the one that failed last. Errors: read_record."""
    found = _read(system).get(address or TWIN, {"stages": []})
    return [*found["stages"], *([found["failed"]] if "failed" in found else [])]


def note_stage(system: System, address: str, number: int, result: Mapping[str, Any], driver: str = POLICY) -> None:
    """Write the result of a stage. One that is not passed takes itself and all later ones out of the record.

    Args:
        system, address: as :func:`read_record`.
        number: of the stage.
        result: what was measured, and whether it is ``passed``.
        driver: that drove its round.
    """
    robots, key, files = _read(system), address or TWIN, limits_hash(system)
    kept = robots[key]["stages"] if key in robots and robots[key]["hash"] == files else []
    stages = kept[: number - 1]
    last = {"stage": number, "motion": STAGES[number - 1].motion, "slow": STAGES[number - 1].slow, "driver": driver}
    last |= {"date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **result}
    entry: dict[str, Any] = {"hash": files, "stages": [*stages, last, *kept[number:]] if result["passed"] else stages}
    if not result["passed"]:
        entry["failed"] = last
    replace_text(_path(system), json.dumps({"robots": {**robots, key: entry}}, indent=2) + "\n")


def stage_number(system: System, address: str, asked: str, driver: str = "") -> int:
    """Return the number of the stage that a person asks for.

    Args:
        system, address, driver: as :func:`read_record`.
        asked: ``next``, or a number.

    Raises:
        BidError: there is no such stage, one before it was not passed, or its result could not be written.
    """
    record = read_record(system, address, driver)
    if not (asked == NEXT or (asked.isdecimal() and 1 <= int(asked) <= len(STAGES))):
        raise BidError(f"--stage is '{asked}'; valid is {NEXT}, or 1 to {len(STAGES)}")
    number = min(record.passed + 1, len(STAGES)) if asked == NEXT else int(asked)
    if number > record.passed + 1:
        why = ", as robot.yaml or the limits of task.yaml have changed" if record.changed else ""
        raise BidError(
            f"stage {number} comes after stage {record.passed + 1}, which {address or 'the twin'} has not passed"
            f"{why}; nothing moves: begin with --stage {record.passed + 1}"
        )
    try:
        with _path(system).open("a"):
            pass
    except OSError as error:
        raise BidError(
            f"{_path(system)} cannot be written ({error.strerror}); valid is a system in a folder of your own: "
            f"bid new FOLDER"
        ) from error
    return number


def check_stages(system: System, arguments: RunArguments) -> None:
    """Raise BidError if a robot would be faster than the stages that it has passed allow. A twin may do anything."""
    holds = arguments.shadow and not arguments.takeover
    if not arguments.robot_ip or arguments.unstaged or holds:
        return
    driver = arguments.driver or system.settings.driver
    record = read_record(system, arguments.robot_ip, driver)
    if arguments.slow > record.slow:
        why = "robot.yaml or the limits of task.yaml have changed since its stages" if record.changed else ""
        passed = why or f"it has passed {record.passed} of {len(STAGES)} stages{' with a policy' * (driver == POLICY)}"
        stage = f"bid up {system.folder} --robot-ip {arguments.robot_ip} --stage {NEXT}"
        raise BidError(
            f"robot {arguments.robot_ip} may move at {record.slow:g} of its speed, as {passed}; valid is "
            f"the next stage ({stage}), bid up --slow {record.slow:g}, or --unstaged; of ros2 launch "
            f"slow:={record.slow:g} or unstaged:=true"
        )


def stage_text(number: int, driver: str, place: Sequence[float]) -> str:
    """Return what moves in a stage.

    Args:
        number: of the stage.
        driver: who drives.
        place: m, base frame, to which the stage ``home`` goes.
    """
    if STAGES[number - 1].motion != ROUND:
        return STAGES[number - 1].text.format(f"[{', '.join(f'{value:.3f}' for value in place)}] m")
    return STAGES[number - 1].text.format(BY_POLICY if driver == POLICY else "the tool's round")


def _path(system: System) -> Path:
    return system.folder / FILE


def _read(system: System) -> dict[str, Any]:
    """Return what is known by address of a robot."""
    path = _path(system)
    if not path.exists() or not path.read_text():
        return {}
    try:
        robots: dict[str, Any] = json.loads(path.read_text())["robots"]
        for entry in robots.values():
            _ = entry["hash"], [item["stage"] for item in entry["stages"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BidError(f"{path} is no record of stages; delete it, and go through them again") from error
    return robots
