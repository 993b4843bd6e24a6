"""One sentence about a bad value: where it is, what it is, and what is valid."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from bid_ros.core.schema import json_schema

Place = Sequence[int | str]
LONGEST: Final = 80  # characters of a value that are shown
_WORDS = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
_SEVERAL = {"number": "numbers", "integer": "whole numbers", "string": "texts"}


def label_of(kind: type[Any]) -> str:
    """Return the name of a class in a sentence: ``FrankaConfig`` is ``franka``."""
    name = kind.__name__.removesuffix("Config").removesuffix("Settings")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def described(kind: type[Any], error: ValidationError, content: object) -> str:
    """Return one sentence about the first mistake.

    Args:
        kind: class that ``content`` does not fit.
        error: error of pydantic.
        content: given values, by field name.
    """
    problems, schema = error.errors(), json_schema(kind)
    # A misspelt field is also a missing one: what was written says more.
    problem = next((item for item in problems if item["type"] == "unexpected_keyword_argument"), problems[0])
    loc: Place = problem["loc"]
    if loc and isinstance(loc[0], int) and isinstance(content, dict):  # a value given by its position
        loc = (list(content)[loc[0]], *loc[1:])
    name = loc[-1] if loc else ""
    holder, parents = _node(schema, loc[:-1])
    fields = ", ".join(holder.get("properties", {}))
    prefix = f"{_path(content, parents)}: " if parents else ""
    if problem["type"] == "missing" and isinstance(name, str):
        return f"{prefix}the field '{name}' is missing; valid are {fields}"
    if problem["type"] == "unexpected_keyword_argument":
        return f"{prefix}unknown field '{name}'; valid are {fields}"
    # A list that is too short lacks its next entry.
    node, place = _node(schema, loc[:-1] if problem["type"] == "missing" else loc)
    valid = str(problem["ctx"]["error"]) if problem["type"] == "value_error" else _valid(schema, node)
    return f"{_path(content, place) or 'the content'} is {_shown(content, place)}; valid is {valid}"


def _path(content: Any, place: Place) -> str:
    """Return a place as ``limits.max_speed`` or, where an entry of a list has a name, ``observation[wrist].shape``."""
    text = ""
    for part in place:
        content = content[part]
        name = content.get("name") if isinstance(content, dict) else None
        text += f".{part}" if isinstance(part, str) else f"[{name if isinstance(name, str) else part}]"
    return text.lstrip(".")


def _shown(content: Any, place: Place) -> str:
    for part in place:
        content = content[part]
    text = type(content).__name__ if isinstance(content, dict) else repr(content)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _node(schema: Mapping[str, Any], place: Place) -> tuple[Mapping[str, Any], Place]:
    """Return the part of a JSON schema that describes a place, and the place as far as the schema goes.

    If a value may have several kinds, pydantic's place continues with the name of the kind. The result ends there.
    """
    node = _resolved(schema, schema)
    for depth, part in enumerate(place):
        if isinstance(part, str):
            inner = node.get("properties", {}).get(part) or node.get("additionalProperties")
        else:
            inner = node.get("items")
        if not isinstance(inner, dict):
            return node, place[:depth]
        node = _resolved(schema, inner)
    return node, place


def _resolved(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    parts = [part for part in node.get("anyOf", []) if part.get("type") != "null"]
    return _resolved(schema, parts[0]) if len(parts) == 1 else node


def _valid(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """Return the values that a part of a JSON schema allows, in words."""
    node = _resolved(schema, node)
    if "const" in node or ("minimum" in node and node["minimum"] == node.get("maximum")):
        return str(node.get("const", node.get("minimum")))
    if "enum" in node:
        return f"one of {', '.join(map(str, node['enum']))}"
    if "anyOf" in node:
        return " or ".join(_valid(schema, part) for part in node["anyOf"])
    kind = str(node.get("type", "something else"))
    if kind == "array":
        return _list(node)
    if kind == "object":
        return "a mapping of fields"
    word = f"a multiple of {node['multipleOf']}" if "multipleOf" in node else _WORDS.get(kind, kind)
    return f"{word}{_range(node)}{' that is not empty' if node.get('minLength') else ''}"


def _range(node: Mapping[str, Any]) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None:
        return f" from {_number(low)} to {_number(high)}" if high is not None else f", {_number(low)} or more"
    words = {"exclusiveMinimum": "above", "maximum": "up to", "exclusiveMaximum": "below"}
    parts = [f"{word} {_number(node[end])}" for end, word in words.items() if end in node]
    return f" {' and '.join(parts)}" if parts else ""


def _number(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _list(node: Mapping[str, Any]) -> str:
    least, most = node.get("minItems"), node.get("maxItems")
    size = f"{least} " if least == most is not None else f"{least} or more " if least else ""
    return f"a list of {size}{_SEVERAL.get(str(node.get('items', {}).get('type')), 'entries')}"
