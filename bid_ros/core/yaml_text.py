"""Writes values into a YAML text, and leaves every other word of it as it is, comments too."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

_WIDE: Final = 1 << 20  # characters: no value is broken over lines


class _InOneLine(yaml.SafeDumper):
    """Writes a text of several lines in double quotes, where a line ends with ``\\n``."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Return the node of a text."""
        style = '"' if len(f"{data}.".splitlines()) > 1 else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_InOneLine.add_representer(str, _InOneLine.represent_str)


def value_of(mapping: yaml.MappingNode, name: str) -> Any:
    """Return the node of a field of a mapping; None: it has none of this name."""
    return next((value for key, value in mapping.value if key.value == name), None)


def with_fields(text: str, where: yaml.MappingNode, fields: Mapping[str, Any], before: str = "") -> str:
    """Return a text with other values of fields of one mapping. Fields that it lacks are added.

    Args:
        text: the whole text.
        where: the mapping, as :func:`yaml.compose` found it in the text.
        fields: by name.
        before: name of a field that new ones stand before; empty: they are at the end.
    """
    known = {key.value for key, _ in where.value}
    if where.flow_style and not known.issuperset(fields):
        return _in_lines(text, where, fields)
    changes: list[tuple[int, int, str]] = []
    rest = dict(fields)
    for key, value in where.value:
        if key.value in rest:
            changes.append((value.start_mark.index, _end(value), flow_text(rest.pop(key.value))))
    if rest:
        own = [value for key, value in where.value if key.value != before] or [where.value[-1][1]]
        indent = " " * where.value[0][0].start_mark.column
        lines = "".join(f"\n{indent}{name}: {flow_text(value)}" for name, value in rest.items())
        changes.append(_after_line(text, max(map(_end, own)), lines))
    return _changed(text, changes)


def with_item(text: str, items: yaml.SequenceNode, item: Any) -> str:
    """Return a text with one more item at the end of a list, ``items`` as :func:`yaml.compose` found it."""
    new = flow_text(item)
    if items.flow_style:
        end = items.end_mark.index - 1
        return _changed(text, [(end, end, f", {new}" if items.value else new)])
    indent = " " * items.start_mark.column
    return _changed(text, [_after_line(text, _end(items), f"\n{indent}- {new}")])


def flow_text(value: Any) -> str:
    """Return a value as YAML in one line."""
    text = yaml.dump(value, Dumper=_InOneLine, default_flow_style=True, width=_WIDE, sort_keys=False)
    return str(text).removesuffix("\n").removesuffix("\n...")


def _in_lines(text: str, where: yaml.MappingNode, fields: Mapping[str, Any]) -> str:
    """Return the text with a mapping in braces, which becomes one of which each field has its line."""
    content = {key.value: text[value.start_mark.index : _end(value)] for key, value in where.value}
    content |= {name: flow_text(value) for name, value in fields.items()}
    line = text[text.rfind("\n", 0, where.start_mark.index) + 1 : where.start_mark.index]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    lines = "".join(f"\n{indent}{name}: {value}" for name, value in content.items())
    begin = len(text[: where.start_mark.index].rstrip(" "))
    after = text[where.end_mark.index :].split("\n", 1)[0].rstrip()
    if after:  # a comment stays with the name
        return _changed(text, [(begin, where.end_mark.index + len(after), f" {after.strip()}{lines}")])
    return _changed(text, [(begin, where.end_mark.index, lines)])


def _after_line(text: str, place: int, lines: str) -> tuple[int, int, str]:
    """Return the change that puts lines after the one of a place."""
    at = text.find("\n", place)
    at = len(text) if at < 0 else at
    return at, at, lines


def _end(node: Any) -> int:
    """Return where a value ends. PyYAML's own end of a block is where the next token begins, after comments."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _changed(text: str, changes: list[tuple[int, int, str]]) -> str:
    for begin, end, new in sorted(changes, reverse=True):
        text = text[:begin] + new + text[end:]
    return text
