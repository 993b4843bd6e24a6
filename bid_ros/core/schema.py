"""JSON schemas of configuration classes. The descriptions come from the docstrings."""

import re
from copy import deepcopy
from typing import Any, Final

from pydantic import TypeAdapter

_ADAPTERS: Final[dict[Any, TypeAdapter[Any]]] = {}  # making one takes milliseconds
_SCHEMAS: Final[dict[Any, dict[str, Any]]] = {}  # and a schema, which every sentence about a bad value needs, 35
# An entry of a docstring's section Attributes is `name, other: text`; after a semicolon another one may follow.
_ENTRY: Final = re.compile(r"(?:^|; )((?:\w+, )*\w+): (.+?)(?=; (?:\w+, )*\w+: |$)")


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's reader of a class."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a class marked with :func:`bid_ros.core.settings.settings`."""
    if kind not in _SCHEMAS:
        _SCHEMAS[kind] = schema = adapter_of(kind).json_schema()
        for part in (schema, *schema.get("$defs", {}).values()):
            _describe(part)
    return deepcopy(_SCHEMAS[kind])


def _describe(part: dict[str, Any]) -> None:
    """Move the description of each attribute from the docstring of a class to the property of its schema."""
    text, _, attributes = part.get("description", "").partition("\n\nAttributes:\n")
    part["description"] = text.partition("\n\n")[0]
    entries = re.sub(r"\n {5,}", " ", attributes.partition("\n\n")[0]).replace("``", "").splitlines()
    properties = part.get("properties", {})
    for entry in entries:
        last = set[str]()
        for names, said in _ENTRY.findall(entry.strip()):
            if named := properties.keys() & set(names.split(", ")):
                last = named
                for name in named:
                    properties[name]["description"] = said
            else:  # what a value means, as in `topic; empty: none`
                for name in last:
                    properties[name]["description"] += f"; {names}: {said}"


def with_twin(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a file whose section ``twin`` may replace any of its fields."""
    fields = schema["properties"]
    what = "Replaces fields where there is no robot: the system runs in its twin."
    section = {"type": "object", "description": what, "properties": fields, "additionalProperties": False}
    return {**schema, "properties": {**fields, "twin": section}}
