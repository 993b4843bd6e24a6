"""Message definitions of the installed packages, which a bag stores beside the messages, and messages made by them."""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from bid_ros.core.errors import RecordingError, TaskError
from bid_ros.core.task import Task

SEPARATOR: Final = "=" * 80
NO_NUMBERS: Final = ("byte", "fixed", "float128", "string", "wchar", "wstring")


@dataclass(frozen=True)
class Definition:
    """What a bag must contain about a type, so that it can be read anywhere.

    Attributes:
        type_name: ``package/msg/Name``.
        text: ros2msg text of the type, followed by that of every type it depends on (MCAP's ``ros2msg`` encoding).
        type_hash: RIHS01 hash of the type, as ROS 2 computes it.
    """

    type_name: str
    text: str
    type_hash: str


def search_prefixes() -> tuple[Path, ...]:
    """Return the installation prefixes in the order of their search: ``AMENT_PREFIX_PATH``, then this Python's."""
    listed = [Path(item) for item in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if item]
    return tuple(dict.fromkeys([*listed, Path(sys.prefix)]))


def find_definition(type_name: str, prefixes: Sequence[Path] | None = None) -> Definition:
    """Return the definition of ``type_name`` (``package/msg/Name``) with everything it depends on.

    Args:
        type_name: full name of the message type.
        prefixes: installation prefixes to look in; default :func:`search_prefixes`.

    Raises:
        RecordingError: the type, or one that it depends on, is not installed or is not a definition.
    """
    texts, types = _parsed(type_name, search_prefixes() if prefixes is None else tuple(prefixes))
    parts = [texts[type_name].rstrip() + "\n"]
    for name, text in texts.items():
        if name != type_name:
            package, _, short = name.split("/")
            parts.append(f"{SEPARATOR}\nMSG: {package}/{short}\n{text.rstrip()}\n")
    return Definition(type_name, "".join(parts), str(_store(types).hash_rihs01(type_name)))


def installed_types(type_name: str) -> dict[str, Any]:
    """Return the installed fields of a type and of every type in it, by name. Raises as :func:`find_definition`."""
    return {name: fields for name, (_, fields) in _parsed(type_name, search_prefixes())[1].items()}


def message_store(type_name: str) -> Typestore:
    """Return what makes and serializes messages of an installed type. Raises as :func:`find_definition`."""
    return _store(_parsed(type_name, search_prefixes())[1])


def _store(types: dict[str, Any]) -> Typestore:
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    return store


def check_vectors(task: Task) -> None:
    """Hold the vectors that a task observes against the installed message definitions.

    Raises:
        TaskError: a type is not installed, or its field is missing, not of numbers, or of another size than the shape.
    """
    for feature in task.observation:
        if feature.kind == "vector":
            where = f"observation '{feature.name}' with field '{feature.field}'"
            try:
                size = _field_size(feature.type, feature.field)
            except RecordingError as error:
                raise TaskError(f"{where}: {error}") from error
            if size not in (math.inf, feature.size):
                raise TaskError(f"{where} has shape {feature.shape}; valid is ({size},), the numbers of that field")


def _field_size(type_name: str, field: str) -> float:
    """Return how many numbers a field has, as :func:`_size`. Raises RecordingError."""
    _, types = _parsed(type_name, search_prefixes())
    kind: Any = (Nodetype.NAME, type_name)
    for name in field.split("."):
        inside = dict(types[kind[1]][1]) if kind[0] == Nodetype.NAME else {}
        if name not in inside:
            valid = ", ".join(inside) or "none, only messages have fields"
            raise RecordingError(f"{type_name} has no '{name}' there; valid are {valid}")
        kind = inside[name]
    return _size(kind, types)


def _size(kind: Any, types: dict[str, Any]) -> float:
    """Return how many numbers a parsed field type has; infinity if it varies. Raises RecordingError for others."""
    node, value = kind
    if node == Nodetype.NAME:
        return sum(_size(part, types) for _, part in types[value][1])
    if node != Nodetype.BASE:
        return _size(value[0], types) * (value[1] if node == Nodetype.ARRAY else math.inf)
    if value[0] in NO_NUMBERS:
        raise RecordingError(f"it holds a {value[0]}; valid are numbers alone")
    return 1


def _parsed(type_name: str, where: Sequence[Path]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the texts, and the parsed definitions, of a type and of every type that it depends on, by name."""
    texts: dict[str, str] = {}
    types: dict[str, Any] = {}
    waiting = [type_name]
    while waiting:
        name = waiting.pop(0)
        if name in texts:
            continue
        texts[name] = _read(name, where)
        try:
            parsed = get_types_from_msg(texts[name], name)
        except TypesysError as error:
            raise RecordingError(f"the definition of {name} cannot be read: {error}") from error
        types.update(parsed)
        kinds = [_element(kind) for _, fields in parsed.values() for _, kind in fields]
        waiting += [str(value) for node, value in kinds if node == Nodetype.NAME]
    return texts, types


def _read(type_name: str, prefixes: Sequence[Path]) -> str:
    parts = type_name.split("/")
    if len(parts) != 3 or parts[1] != "msg":
        raise RecordingError(f"message type '{type_name}' has an unknown form; valid is package/msg/Name")
    for prefix in prefixes:
        path = prefix / "share" / parts[0] / "msg" / f"{parts[2]}.msg"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    searched = ", ".join(str(prefix) for prefix in prefixes)
    raise RecordingError(f"message type '{type_name}' is not installed; looked in share/ of {searched}")


def _element(kind: Any) -> Any:
    """Return the parsed type of one element: (NAME, name), (BASE, ...); an array or sequence has (inner, length)."""
    while kind[0] in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        kind = kind[1][0]
    return kind


NUMBERS: Final = {"byte": "uint8", "char": "uint8", "bool": "bool"}  # numpy's names where they differ


class Encoder:
    """Serializes messages of one installed type.

    Args:
        type_name: ``package/msg/Name``.

    Raises:
        RecordingError: the type is not installed.
    """

    def __init__(self, type_name: str) -> None:
        self._name, self._store = type_name, message_store(type_name)

    @cached_property
    def definition(self) -> Definition:
        """What a bag must contain about the type."""
        return find_definition(self._name)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(name for name, _ in self._store.fielddefs[self._name][1])

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """Return a message in CDR. Fields that ``values`` lacks are zero or empty; a mapping is a message in a field.

        Raises:
            RecordingError: the type has no field of such a name.
        """
        return bytes(self._store.serialize_cdr(self._message(self._name, values), self._name))

    def _message(self, name: str, values: Mapping[str, Any]) -> Any:
        fields = dict(self._store.fielddefs[name][1])
        if unknown := values.keys() - fields.keys():
            raise RecordingError(f"{name} has no field {min(unknown)}; valid are {', '.join(fields)}")
        return self._store.types[name](
            **{field: self._field(kind, values.get(field)) for field, kind in fields.items()}
        )

    def _field(self, kind: Any, value: Any) -> Any:
        node, inner = kind
        if node == Nodetype.NAME:
            return self._message(inner, value or {})
        if node == Nodetype.BASE:
            return value if value is not None else "" if inner[0] == "string" else 0
        (element, element_kind), count = inner
        if element == Nodetype.NAME:
            given = list(value or [{}] * (count if node == Nodetype.ARRAY else 0))
            return [self._message(element_kind, item) for item in given]
        if element_kind[0] == "string":
            return list(value or [])
        dtype = np.dtype(NUMBERS.get(element_kind[0], element_kind[0]))
        return np.zeros(count if node == Nodetype.ARRAY else 0, dtype) if value is None else np.asarray(value, dtype)
