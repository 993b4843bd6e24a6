"""From the keys of a data set to what a task observes and commands."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.data_keys import split_key
from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.limits import Limits
from bid_ros.core.task import Task
from bid_ros.core.units import conversion, doubt, impossible
from bid_ros.formats.base import ACTIONS, NUMBERS, Column, Contents, DataEpisode, Source
from bid_ros.formats.pick import ACTION, Pick, check_orders

VECTOR = "axis_angle"  # in the names of values that are rotation vectors, as UMI and robosuite have them


class Mapped:
    """A data set seen as that of a task: colours uint8, distances uint16 mm, the rest float64, in the task's order.

    Args:
        source: opened data set.
        task: what its rows become. Its section ``data`` names keys; a feature without one is taken from the column of
            its name, or from values named ``<feature>.<value>`` in a larger column such as ``observation.state``.

    Raises:
        RecordingError: a feature is nowhere, or in several places, or has another shape; or the rates differ.
    """

    def __init__(self, source: Source, task: Task) -> None:
        self._source, self._task = source, task
        found = source.contents
        self._check_rate(found)
        # What was written for this task has its names: keys are for data sets of others.
        self._own = found.signature == task.signature()
        keys = None if self._own else task.data
        columns = {column.name: column for column in found.columns}
        self._observed = {
            item.name: _pick(item, columns, found, task, keys.observation if keys else {}, "observation")
            for item in task.observation
        }
        self._commanded = _pick_actions(columns, found, task, keys.action if keys else {})
        check_orders(task, list(self._observed.values()), self._commanded, {**columns, ACTION: found.action})
        if keys:
            commanded = zip((item.name for item in task.action), self._commanded, strict=True)
            _check_apart("observation", [each for each in self._observed.items() if each[0] in keys.observation])
            _check_apart("action", [each for each in commanded if each[0] in keys.action])
        units = keys.unit if keys else {}
        self._observed = {name: self._in_unit(name, pick, units) for name, pick in self._observed.items()}
        self._commanded = tuple(
            self._in_unit(item.name, pick, units) for item, pick in zip(task.action, self._commanded, strict=True)
        )
        self._used = {pick.column for pick in (*self._observed.values(), *self._commanded)}
        self.contents = replace(
            found,
            columns=tuple(
                self._column(item, self._observed[item.name], {**columns, ACTION: found.action})
                for item in task.observation
            ),
            action=Column("action", (task.action_dim,), "float64", names=_names(task.action), key=found.action.key),
            rate_hz=task.rate_hz,
            task=task.name,
            signature=task.signature(),
            left=(*found.left, *self._unused(found)),
            notes=(*found.notes, *(f"'{name}' is read in {unit}" for name, unit in units.items())),
        )

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on, with the task's features."""
        said: set[str] = set()
        for number, episode in enumerate(self._source.episodes(start, self._used), start):
            observations = {
                item.name: _converted(item, self._observed[item.name], episode, number, self._task.limits, said)
                for item in self._task.observation
            }
            parts = [
                _converted(item, pick, episode, number, self._task.limits, said)
                for item, pick in zip(self._task.action, self._commanded, strict=True)
            ]
            text = episode.text or self._task.description
            yield replace(episode, observations=observations, actions=np.concatenate(parts, axis=1), text=text)

    @property
    def files(self) -> tuple[str, ...]:
        """State of what the source reads, if it says so: parts of what has changed since are not used."""
        return getattr(self._source, "files", ())

    def _in_unit(self, name: str, pick: Pick, units: Mapping[str, str]) -> Pick:
        """Return a pick that makes rad or m of the unit that the task file names."""
        if name not in units:
            return replace(pick, known=self._own)
        kind = next(item.kind for item in (*self._task.observation, *self._task.action) if item.name == name)
        scale, offset = conversion(units[name], kind, name, self._task.limits)
        return replace(pick, scale=scale, offset=offset, known=True)

    def _check_rate(self, found: Contents) -> None:
        rate, task = found.rate_hz, self._task
        if rate is not None and abs(rate - task.rate_hz) > 1e-6 * task.rate_hz:
            raise RecordingError(
                f"the data set has {rate:g} rows a second; task '{task.name}' has rate_hz {task.rate_hz:g}; "
                "valid is the same rate"
            )

    def _column(self, feature: Feature, pick: Pick, columns: dict[str, Column]) -> Column:
        image = feature.kind == "image"
        return Column(
            feature.name,
            feature.shape,
            feature.dtype,
            image,
            names=() if image else _names((feature,)),
            key=pick.key,
            codec=columns[pick.column].codec,
        )

    def _unused(self, found: Contents) -> list[str]:
        unused = [column.key or column.name for column in found.columns if not column.wanted(self._used)]
        return [f"the task does not name {', '.join(unused)}"] if unused else []


def mapped(source: Source, task: Task) -> Source:
    """Return ``source`` as a data set of ``task``. Raises RecordingError as :class:`Mapped`."""
    return Mapped(source, task)


def _names(features: Sequence[Feature]) -> tuple[str, ...]:
    return tuple(
        item.name if item.size == 1 else f"{item.name}.{number}" for item in features for number in range(item.size)
    )


def _pick(
    feature: Feature, columns: dict[str, Column], found: Contents, task: Task, keys: dict[str, str], what: str
) -> Pick:
    """Return where a feature is, by its key or by its name."""
    said = f"{what} '{feature.name}' of task '{task.name}'"
    if feature.name in keys:
        return _by_key(feature, keys[feature.name], columns, found, said)
    if what == "observation" and feature.name in columns:
        return _whole(feature, columns[feature.name], feature.name, said)
    observed = [item for item in columns.items() if not item[1].by_key_alone]
    candidates = observed if what == "observation" else [(ACTION, found.action)]
    named = [(at, column, indices) for at, column in candidates if (indices := _named(feature, column))]
    if len(named) == 1:
        at, column, indices = named[0]
        return _checked(feature, Pick(at, indices, f"{column.key or column.name}[{feature.name}]"), said, column)
    if len(named) > 1:
        where = " and ".join(column.key or column.name for _, column, _ in named)
        raise RecordingError(f"{said} is in {where} of the data set; name one in the section data of the task file")
    raise RecordingError(
        f"the data set lacks {said}; it has {_valid(columns, found)}; name the key in the section data of the task file"
    )


def _pick_actions(columns: dict[str, Column], found: Contents, task: Task, keys: dict[str, str]) -> tuple[Pick, ...]:
    """Return where each action is. The action as a whole is the task's where no doubt is possible."""
    in_order = found.signature == task.signature() or (len(task.action) == 1 and not found.action.names)
    if in_order and not keys and found.action.size:
        _check_size(found.action.key or "action", found.action.size, task)
        return tuple(
            Pick(ACTION, tuple(range(part.start, part.stop)), found.action.key or "action")
            for _, part in task.action_columns
        )
    if len(task.action) == 1 and task.action[0].size == found.action.size and not keys:
        return (Pick(ACTION, tuple(range(found.action.size)), found.action.key or "action"),)
    return tuple(_pick(item, columns, found, task, keys, "action") for item in task.action)


def _check_apart(what: str, picks: Sequence[tuple[str, Pick]]) -> None:
    """Raise RecordingError if two features of a mapping take the same value of a column, or the same images."""
    taken: dict[tuple[str, int], str] = {}
    for name, pick in picks:
        for at in pick.indices or (-1,):
            other = taken.setdefault((pick.column, at), name)
            if other != name:
                value = "" if at < 0 else f"value {at} of "
                key = pick.key.partition("[")[0]
                raise RecordingError(
                    f"{what} '{name}' and '{other}' are both {value}'{key}' of the data set; valid are different "
                    "columns in the section data of the task file"
                )


def _check_size(key: str, size: int, task: Task) -> None:
    if size != task.action_dim:
        raise RecordingError(f"'{key}' of the data set has {size} values; task '{task.name}' has {task.action_dim}")


def _by_key(feature: Feature, text: str, columns: dict[str, Column], found: Contents, said: str) -> Pick:
    key, wanted = split_key(text)
    by_key = {column.key: name for name, column in columns.items() if column.key}
    whole = ACTION if key in ACTIONS and found.action.size else None
    at = key if key in columns else by_key.get(key, ACTION if key == found.action.key else whole)
    if at is None:
        raise RecordingError(f"{said} names the key '{key}'; valid are {_valid(columns, found)}")
    column = found.action if at == ACTION else columns[at]
    if wanted is None:
        return _whole(feature, column, at, said)
    return _checked(feature, Pick(at, tuple(_index(item, column, said) for item in wanted), text), said, column)


def _index(wanted: int | str, column: Column, said: str) -> int:
    key = column.key or column.name
    if isinstance(wanted, int):
        if wanted >= column.size:
            raise RecordingError(f"{said} names value {wanted} of '{key}'; valid are 0 to {column.size - 1}")
        return wanted
    if wanted not in column.names:
        valid = (
            f"valid are {', '.join(column.names)}" if column.names else "valid are numbers: its values have no names"
        )
        raise RecordingError(f"{said} names the value '{wanted}' of '{key}'; {valid}")
    return column.names.index(wanted)


def _whole(feature: Feature, column: Column, at: str, said: str) -> Pick:
    key = column.key or column.name
    if feature.kind == "image" and not feature.depth and column.shape in _grey(feature):
        return Pick(at, None, key)
    if (feature.kind == "image") != column.image or (column.image and column.shape != feature.shape):
        kind = "an image" if column.image else "no image"
        raise RecordingError(
            f"{said} is a {feature.kind} of {feature.shape}; '{key}' of the data set is {kind} of {column.shape}"
        )
    indices = None if column.image else tuple(range(column.size))
    return _checked(feature, Pick(at, indices, key), said, column)


def _grey(feature: Feature) -> tuple[tuple[int, ...], ...]:
    """Return the shapes that pictures of a grey camera have, which become rgb."""
    return feature.shape[:2], (*feature.shape[:2], 1)


def _checked(feature: Feature, pick: Pick, said: str, column: Column) -> Pick:
    if pick.indices is None:
        return pick
    if feature.kind == "image":
        raise RecordingError(f"{said} is an image; '{pick.key}' names values")
    if np.dtype(column.dtype).kind not in NUMBERS:
        raise RecordingError(f"{said} is a {feature.kind}; '{pick.key}' of the data set is {column.dtype}, no numbers")
    if feature.kind == "rotation_6d" and len(pick.indices) == 3:
        called = [column.names[at] for at in pick.indices] if column.names else [column.name]
        if all(VECTOR in name for name in called):
            return replace(pick, turned=True)
    if len(pick.indices) != feature.size:
        raise RecordingError(
            f"{said} is a {feature.kind} of {feature.size} values; '{pick.key}' of the data set has {len(pick.indices)}"
        )
    return pick


def _named(feature: Feature, column: Column) -> tuple[int, ...]:
    """Return the values of a column that are named after a feature."""
    return tuple(
        at for at, name in enumerate(column.names) if name == feature.name or name.startswith(f"{feature.name}.")
    )


def _valid(columns: dict[str, Column], found: Contents) -> str:
    return ", ".join(_described(column) for column in (*columns.values(), found.action) if column.size)


def _described(column: Column) -> str:
    return f"{column.key or column.name} {column.shape}"


def _converted(
    feature: Feature, pick: Pick, episode: DataEpisode, number: int, limits: Limits, said: set[str]
) -> NDArray[Any]:
    values = pick.of(episode)
    if feature.kind != "image":
        numbers = np.asarray(values, dtype=np.float64)
        if (pick.scale, pick.offset) != (1.0, 0.0):
            numbers = numbers * pick.scale + pick.offset
        if feature.name not in said and not pick.known and (why := doubt(feature.kind, feature.name, numbers, limits)):
            if impossible(feature.kind, numbers):
                raise RecordingError(f"episode {number}: {why}")
            said.add(feature.name)
            logging.getLogger(__name__).warning("episode %d: %s", number, why)
        return numbers
    if not feature.depth and values.shape[1:] in _grey(feature):
        values = np.repeat(values.reshape(len(values), *feature.shape[:2], 1), 3, axis=3)
    if values.dtype == feature.dtype:
        return values
    most = np.iinfo(feature.dtype).max
    if not ((values >= 0) & (values <= most) & (values % 1 == 0)).all():
        raise RecordingError(
            f"episode {number}: '{pick.key}' is {values.dtype} with values that are no whole numbers from 0 to {most}; "
            f"valid for image '{feature.name}' are these"
        )
    return values.astype(feature.dtype)
