"""Makes and serializes messages from plain values, without ROS."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from rosbags.interfaces import Nodetype

from bid_ros.core.errors import RecordingError
from bid_ros.recording.definitions import Definition, find_definition, message_store

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
