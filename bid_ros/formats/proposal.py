"""Proposes the task file of a data set: features, keys, units and limits, each with what speaks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import load_yaml
from bid_ros.core.task import NO_ROBOT, parse_task
from bid_ros.core.yaml_text import flow_text
from bid_ros.formats.base import Contents, Source
from bid_ros.formats.guessing import JOINT, Guess, commanded, observed, safe, words_of
from bid_ros.formats.mapping import mapped
from bid_ros.formats.reached import MARGIN, Numbers, ReachedLimits, ends_of
from bid_ros.formats.unit_evidence import Judged, finger_unit, gripper_unit, joint_unit, position_unit, unnamed_unit

HORIZON_S: Final = 1.6
HORIZONS: Final = (16, 64)  # rows, least and most
UNKNOWN_RATE_HZ: Final = 10
DEFAULT_M: Final = 0.08  # opening of a gripper that no number tells
HANDS: Final = "hands"  # end of the name of a feature of fingers
# A topic that a vector needs, though nothing is live.
NO_TOPIC: Final = {"type": "std_msgs/msg/Float64MultiArray", "field": "data"}


@dataclass(frozen=True)
class ProposedTask:
    """A task file.

    Attributes:
        text: its content.
        features: what it observes and commands: name, kind, key and unit of each.
        undecided: a sentence for each thing that a person has to decide; a commented line of the file names it.
    """

    text: str
    features: list[dict[str, str]]
    undecided: list[str]


def propose(source: Source, path: str) -> ProposedTask:
    """Return the task file of a data set of any robot.

    Args:
        source: opened data set.
        path: of it, for the file's head and the task's name.

    Raises:
        RecordingError: it holds no action or nothing that is observed, or is damaged.
    """
    contents = source.contents
    seen, done = observed(contents), [guess for guess in commanded(contents) if guess.kind != "image"]
    if not (any(guess.kind for guess in seen) and any(guess.kind for guess in done)):
        missing = "action that a task can command" if any(guess.kind for guess in seen) else "observation of a task"
        held = ", ".join(column.key or column.name for column in (*contents.columns, contents.action) if column.size)
        raise RecordingError(
            f"data set {path} holds no {missing}; it holds {held or 'nothing'}: write its task by hand"
        )
    numbers = Numbers(source, [*seen, *done])
    units = _units([*seen, *done], numbers)
    blocks = [
        _head(contents, path, numbers),
        _features("observation", seen, contents.rate_hz),
        _features("action", done, None),
        _limits(ReachedLimits(seen, done, units, numbers, contents.rate_hz), numbers, [*seen, *done]),
        _data(seen, done, units),
    ]
    lines = (" ".join(line.splitlines()) for block in blocks for line in (*block, ""))  # comments may have names of two
    text = "\n".join(lines).rstrip() + "\n"
    mapped(source, parse_task({"rate_hz": UNKNOWN_RATE_HZ, **load_yaml(text)}))
    return ProposedTask(text, _described(seen, done, units), _undecided(seen, done, units, contents))


def _units(guesses: Sequence[Guess], numbers: Numbers) -> dict[str, Judged]:
    """Return the unit of each feature that has one, judged by all that is observed and commanded of it."""
    found = {}
    for name in dict.fromkeys(guess.name for guess in guesses):
        mine = [guess for guess in guesses if guess.name == name and guess.kind in ("joints", "gripper", "position")]
        if mine:
            ends = ends_of([part for guess in mine for part in numbers.of(guess)])
            found[name] = _unit(mine[0], tuple(value for guess in mine for value in guess.names), *ends)
    return found


def _unit(guess: Guess, names: tuple[str, ...], low: float, high: float) -> Judged:
    if guess.kind == "position":
        return position_unit(low, high)
    if guess.kind == "gripper":
        return gripper_unit((*names, guess.name), low, high)
    if guess.name.endswith(HANDS):
        return finger_unit(low, high)
    if not names and not words_of(guess.column.name) & JOINT:
        return unnamed_unit(low, high)
    return joint_unit(names, low, high)


def _described(seen: Sequence[Guess], done: Sequence[Guess], units: Mapping[str, Judged]) -> list[dict[str, str]]:
    return [
        {
            "group": group,
            "name": guess.name,
            "kind": guess.kind,
            "key": guess.key,
            "unit": units[guess.name].unit if guess.name in units else "",
        }
        for group, guesses in (("observation", seen), ("action", done))
        for guess in guesses
        if guess.kind
    ]


def _undecided(
    seen: Sequence[Guess], done: Sequence[Guess], units: Mapping[str, Judged], contents: Contents
) -> list[str]:
    found = [f"'{guess.key}' is left out: {guess.why}" for guess in (*seen, *done) if not guess.kind]
    sizes = {guess.name: (guess.kind, guess.size) for guess in seen}
    for guess in done:
        if guess.kind in ("joints", "position") and sizes.get(guess.name) != (guess.kind, guess.size):
            found.append(
                f"action '{guess.name}' has no observation of that name and size: observe it, or train with "
                "--set action_reference=base"
            )
    for name, judged in units.items():
        if not judged.unit:
            found.append(f"unit of '{name}': {judged.why}; valid: {_choices(judged)}")
    return found if contents.rate_hz else [*found, "rate_hz: the data set does not say it"]


def _choices(judged: Judged) -> str:
    return " or ".join(judged.choices) or "none that bid knows"


def _head(contents: Contents, path: str, numbers: Numbers) -> list[str]:
    """Return name, rate and horizon."""
    name, rate = safe(Path(path).resolve().name.split(".")[0].lower()), contents.rate_hz
    horizon = min(HORIZONS[1], max(HORIZONS[0], 8 * round(HORIZON_S * (rate or UNKNOWN_RATE_HZ) / 8)))
    unknown = f"# rate_hz: {UNKNOWN_RATE_HZ}   # the data set does not say it: rows per second"
    return [
        f"# Proposed by `bid data map {path}` from the names, shapes and numbers of the data set.",
        "# Whoever knows the robot reads it before training. What the data do not tell is in comments.",
        *(f"# Read otherwise than the files say: {note}" for note in contents.notes),
        f"name: {flow_text(name)}",
        f"description: {flow_text(numbers.text)}",
        f"robot: {NO_ROBOT}   # trained and evaluated on recorded data; nothing moves with it",
        f"rate_hz: {rate:g}   # of the data set" if rate else unknown,
        "observation_steps: 2   # the newest observation and the row before it",
        f"horizon: {horizon}   # rows of a prediction",
    ]


def _features(group: str, guesses: Sequence[Guess], rate_hz: float | None) -> list[str]:
    """Return the features of a group; those that are left are comments."""
    lines = [f"{group}:"]
    for guess in guesses:
        shape = guess.column.shape if guess.at is None else (guess.size,)
        shape = (*shape, 3) if guess.kind == "image" and len(shape) == 2 else shape
        content: dict[str, Any] = {"name": guess.name, "kind": guess.kind or "vector", "shape": list(shape)}
        if guess.kind == "rotation_6d":
            content["shape"] = [6]
        if guess.kind is None and not guess.column.image:
            content |= {"topic": guess.name} | NO_TOPIC
        if guess.kind is None and guess.column.image:
            content |= {"kind": "image", "depth": [0.1, 2.0]}
        if rate_hz:
            content["rate_hz"] = int(rate_hz) if rate_hz == int(rate_hz) else rate_hz
        if guess.kind == "joints" and guess.names and len(set(guess.names)) == guess.size:
            content["names"] = list(guess.names)
        left = "" if guess.kind else f"   # {guess.why}"
        lines.append(f"  {'' if guess.kind else '# '}- {flow_text(content)}{left}")
    return lines


def _limits(reached: ReachedLimits, numbers: Numbers, guesses: Sequence[Guess]) -> list[str]:
    """Return the limits: what the data reach, and a margin."""
    rows = "all rows" if numbers.whole else f"the first {numbers.rows} rows"
    lines = [f"limits:   # what {rows} reach, and {MARGIN:.0%} more: taken from the data, NOT safe for an arm"]
    box = reached.box()
    if box is None:
        lines.append("  workspace_min: [-1, -1, -1]   # says nothing: nobody knows where the tool is")
        lines.append("  workspace_max: [1, 1, 1]")
    else:
        lines += [f"  workspace_{end}: {flow_text(each)}" for end, each in zip(("min", "max"), box, strict=True)]
        lines.append("  max_tilt: 3.2   # any, not from the data")
    lines += [f"  {name}: {value:g}" for name, value in reached.motion().items()]
    if any(guess.kind == "gripper" for guess in guesses):
        widest = f"{reached.widest:g}" if reached.widest else f"{DEFAULT_M:g}   # m; not in the data, measure yours"
        lines.append(f"  gripper_max: {widest}")
    return lines


def _data(seen: Sequence[Guess], done: Sequence[Guess], units: Mapping[str, Judged]) -> list[str]:
    """Return keys and units; those that are not decided are comments."""
    lines = ["data:   # where the data set has them"]
    for group, guesses in (("observation", seen), ("action", done)):
        lines.append(f"  {group}:")
        lines += [
            f"    {'' if guess.kind else '# '}{flow_text(guess.name)}: {flow_text(guess.key)}" for guess in guesses
        ]
    if units:
        lines.append("  unit:" if any(judged.unit for judged in units.values()) else "  # unit:")
    for name, judged in units.items():
        if judged.unit:
            lines.append(f"    {flow_text(name)}: {judged.unit}   # {judged.why}")
        else:
            first = (*judged.choices, "?")[0]
            lines.append(f"    # {flow_text(name)}: {first}   # valid: {_choices(judged)}. {judged.why}")
    return lines
