"""Which features the columns of a data set are, guessed from their names, shapes and types."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bid_ros.core.feature import FeatureKind
from bid_ros.formats.base import NUMBERS, Column, Contents
from bid_ros.formats.mapping import VECTOR

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBERED: Final = re.compile(r"(.+)\.\d+")
_END: Final = re.compile(r"\.(pos|q|position)$")
PLACE: Final = {"position", "pos", "xyz", "translation"}
TURN: Final = {"rotation", "rot"}
GRIPPER: Final = {"gripper", "jaw", "claw"}
HAND: Final = {"hand", "hands", "thumb", "finger", "fingers", "pinky"}
JOINT: Final = {"joint", "joints", "qpos", "motor"}
MOTION: Final = {
    "vel",
    "velocity",
    "velocities",
    "dq",
    "qvel",
    "effort",
    "efforts",
    "torque",
    "tau",
    "current",
    "force",
}
POSE: Final = {
    "ee",
    "eef",
    "tcp",
    "pose",
    "quat",
    "quaternion",
    "orientation",
    "qx",
    "qy",
    "qz",
    "qw",
    "x",
    "y",
    "z",
    "w",
}
EULER: Final = {"roll", "pitch", "yaw"}
WHOLE: Final = {
    "state",
    "action",
    "actions",
    "joint",
    "joints",
    "joint_positions",
    "qpos",
    "agent_pos",
    "robot0_joint_pos",
}


@dataclass(frozen=True)
class Guess:
    """A feature that values of a column seem to be.

    Attributes:
        name: of the feature.
        kind: its kind; None: nobody can tell, so it is left to a person.
        column: of the data set.
        at: numbers of its values in a row; None: images.
        names: of these values; empty: unknown.
        why: why it is left.
    """

    name: str
    kind: FeatureKind | None
    column: Column
    at: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()
    why: str = ""

    @property
    def key(self) -> str:
        """Where it is, as a section ``data`` says it."""
        key = self.column.key or self.column.name
        if self.at is None or self.at == tuple(range(self.column.size)):
            return key
        if len(self.at) == 1:
            return f"{key}[{self.at[0]}]"
        if self.at == tuple(range(self.at[0], self.at[-1] + 1)):
            return f"{key}[{self.at[0]}:{self.at[-1] + 1}]"
        return f"{key}[{', '.join(map(str, self.at))}]"

    @property
    def size(self) -> int:
        """Number of its values."""
        return 0 if self.at is None else len(self.at)


def observed(contents: Contents) -> list[Guess]:
    """Return what the columns of observations seem to be, with different names."""
    columns = [column for column in contents.columns if not column.by_key_alone]
    return _told_apart([guess for column in columns for guess in _split(column)])


def commanded(contents: Contents) -> list[Guess]:
    """Return what the action seems to be: the column of it, or those whose keys begin with ``action``.

    An action whose values have no names is taken to have those of what is observed in its size, if these agree.
    """
    action = contents.action
    if not action.size:
        columns = [column for column in contents.columns if column.by_key_alone and column.name.startswith("action")]
        return _told_apart([guess for column in columns for guess in _split(column)])
    if not action.names:
        alike = {each.names for each in contents.columns if each.names and each.shape == action.shape}
        action = replace(action, names=alike.pop()) if len(alike) == 1 else action
    return _told_apart(list(_split(action)))


def safe(name: str) -> str:
    """Return a name of a feature from one of a data set."""
    return re.sub(r"\W+", "_", _END.sub("", name)).strip("_") or "feature"


def words_of(text: str) -> set[str]:
    """Return the words of a name, in small letters."""
    return {word.lower() for word in _WORD.findall(text)}


def _split(column: Column) -> Iterator[Guess]:
    """Yield the features that a column seems to hold."""
    own = safe(re.sub(r"^(action|state)s?[._](?=.)", "", column.name))
    if column.image:
        depth = column.shape[2:] == (1,) and column.dtype == "uint16"
        why = "pictures of distances: depth is the nearest and the farthest that matter, m" if depth else ""
        yield Guess(own, None if depth else "image", column, why=why)
        return
    at = tuple(range(column.size))
    if (kind := np.dtype(column.dtype).kind) != "f":
        why = f"numbers of the type {column.dtype}" if kind in NUMBERS else f"{column.dtype}, no numbers"
        yield Guess(own, None, column, at, column.names, why)
        return
    for name, part in _grouped(column, own):
        names = tuple(column.names[number] for number in part) if column.names else ()
        yield from _guessed(Guess(name, None, column, part, names))


def _grouped(column: Column, own: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return the numbered values ``name.0``, ``name.1`` of a column as groups, and all others as one."""
    groups: dict[str, list[int]] = {}
    for number, name in enumerate(column.names or [""] * column.size):
        numbered = _NUMBERED.fullmatch(name)
        groups.setdefault(numbered[1] if numbered else "", []).append(number)
    return [(safe(name) if name else own, tuple(part)) for name, part in groups.items()]


def _guessed(whole: Guess) -> Iterator[Guess]:
    """Yield the features of a group of values: one by its name and size, or several by the names of its values."""
    words = words_of(whole.name)
    known = _by_size(whole, words)
    if known:
        yield replace(whole, kind=known, names=())
    elif words & MOTION:
        yield replace(whole, why="speeds or forces, which a task takes from a topic (kind: vector)")
    elif words & POSE and not words & JOINT:
        yield replace(whole, why="a pose of another form; a position has 3 values, a rotation_6d 6")
    elif not whole.names:
        yield replace(whole, kind="joints", name="joints" if whole.name in WHOLE else whole.name)
    else:
        yield from _by_value(whole)


def _by_size(whole: Guess, words: set[str]) -> FeatureKind | None:
    if whole.size == 3 and words & PLACE and not words & JOINT:
        return "position"
    turned = whole.size == 3 and any(VECTOR in name for name in (*whole.names, whole.column.name))
    if turned or (whole.size == 6 and words & TURN):
        return "rotation_6d"
    if whole.size == 1 and words & (GRIPPER | {"width"}):
        return "gripper"
    return None


def _by_value(whole: Guess) -> Iterator[Guess]:
    kinds: dict[str, list[int]] = {}
    for number, name in enumerate(whole.names):
        kinds.setdefault(_kind_of_value(name), []).append(number)
    assert whole.at is not None
    base = "" if whole.name in WHOLE else whole.name
    for kind, numbers in kinds.items():
        at, names = tuple(whole.at[number] for number in numbers), tuple(whole.names[number] for number in numbers)
        part = replace(whole, at=at, names=names)
        if kind == "gripper":
            for place, name in zip(at, names, strict=True):
                yield replace(whole, kind="gripper", at=(place,), names=(name,), name=safe(name))
        elif kind in ("joints", "hands"):
            called = safe(names[0]) if whole.column.size == 1 else (base or "joints")
            hand = kind == "hands" and whole.column.size > 1
            yield replace(part, kind="joints", name=(f"{base}_hands" if base else "hands") if hand else called)
        else:
            yield replace(part, name=f"{base or 'state'}_{kind}", why=f"{kind}: {', '.join(names[:8])}")


def _kind_of_value(name: str) -> str:
    words, plain = words_of(name), name.lower().split(".")[-1]
    if words & MOTION:
        return "motion"
    if words & GRIPPER:
        return "gripper"
    if words & HAND:
        return "hands"
    return "pose" if words & POSE or plain in EULER else "joints"


def _told_apart(guesses: Sequence[Guess]) -> list[Guess]:
    """Return guesses with different names."""
    taken: set[str] = set()
    found = []
    for guess in guesses:
        name, number = guess.name, 2
        if name in taken:
            name = safe(f"{guess.column.name}_{guess.name}")
        while name in taken:
            name, number = f"{safe(guess.column.name)}_{guess.name}_{number}", number + 1
        taken.add(name)
        found.append(replace(guess, name=name))
    return found
