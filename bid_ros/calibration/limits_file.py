"""Writes measured limits into a task file, and leaves every other word of it as it is, comments too."""

from collections.abc import Sequence
from typing import Any, Final

import yaml

from bid_ros.calibration.limits import START, TABLE, WORKSPACE, MeasuredLimits, TablePlane
from bid_ros.core.errors import CalibrationError
from bid_ros.core.files import replace_text
from bid_ros.core.settings import load_yaml, parse_settings
from bid_ros.core.task import Task
from bid_ros.core.yaml_text import value_of, with_fields, with_item
from bid_ros.system.folder import System

FILE: Final = "task.yaml"


def write_limits(system: System, limits: MeasuredLimits, parts: Sequence[str]) -> None:
    """Write parts of measured limits into the ``task.yaml`` of a system's own folder.

    The file is written whole, or not at all: the new text is read first, as the system would read it.

    Args:
        system: its folder. A file of a system that it is like is copied into it.
        limits: to write.
        parts: which of them, as :data:`bid_ros.calibration.limits.PARTS`.

    Raises:
        BidError: the file would not be valid, is written in a way that cannot be edited, or cannot be written.
    """
    source, path = system.file(FILE), system.folder / FILE
    text = edited_task(source.read_text(), limits, parts)
    parse_settings(Task, load_yaml(text), f"task file {path}")
    try:
        replace_text(path, text)
    except OSError as error:
        raise CalibrationError(
            f"{path} cannot be written ({error.strerror}); valid is a system in a folder of your own: bid new FOLDER"
        ) from error


def edited_task(text: str, limits: MeasuredLimits, parts: Sequence[str]) -> str:
    """Return the text of a task file with other limits.

    Raises:
        CalibrationError: it is written in a way that cannot be edited.
    """
    wanted = load_yaml(text)
    try:
        new = _edited(text, wanted, limits, parts)
        same = load_yaml(new) == wanted
    except yaml.YAMLError:  # a value that is used elsewhere too, by its anchor
        same = False
    if not same:
        raise CalibrationError(f"{FILE}: its limits are written in a way that cannot be edited; write them plainly")
    return new


def _edited(text: str, wanted: dict[str, Any], limits: MeasuredLimits, parts: Sequence[str]) -> str:
    """Return the changed text, and change ``wanted``, what the text holds, likewise."""
    if WORKSPACE in parts:
        box = {"workspace_min": [*limits.workspace.low], "workspace_max": [*limits.workspace.high]}
        text = with_fields(text, _limits(text), box)
        wanted["limits"].update(box)
    if START in parts and limits.start is not None:
        start = {"tool_min": [*limits.start.low], "tool_max": [*limits.start.high]}
        own = value_of(_root(text), "start")
        where, fields = (own, start) if isinstance(own, yaml.MappingNode) else (_root(text), {"start": start})
        text = with_fields(text, where, fields)
        wanted["start"] = start
    if TABLE in parts and limits.table is not None:
        text = _with_table(text, limits.table)
        _put_table(wanted["limits"], limits.table)
    return text


def _with_table(text: str, table: TablePlane) -> str:
    limits = _limits(text)
    places = value_of(limits, "keep_out")
    if not isinstance(places, yaml.SequenceNode):
        return with_fields(text, limits, {"keep_out": [_item(table)]})
    for item in places.value:
        if isinstance(item, yaml.MappingNode) and getattr(value_of(item, "name"), "value", "") == TABLE:
            return with_fields(text, item, _plane(table))
    return with_item(text, places, _item(table))


def _put_table(limits: dict[str, Any], table: TablePlane) -> None:
    """Change what a task file holds as the text is to be changed."""
    places = limits["keep_out"] = list(limits.get("keep_out") or ())
    found = next((place for place in places if place["name"] == TABLE), None)
    if found is None:
        places.append(_item(table))
    else:
        found.update(_plane(table))


def _plane(table: TablePlane) -> dict[str, Any]:
    return {"normal": [*table.normal], "offset": table.offset}


def _item(table: TablePlane) -> dict[str, Any]:
    return {"name": TABLE, **_plane(table)}


def _root(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode), "the task was read from it"
    return root


def _limits(text: str) -> yaml.MappingNode:
    found = value_of(_root(text), "limits")
    if not isinstance(found, yaml.MappingNode):
        raise CalibrationError(f"{FILE}: limits is written in a way that cannot be edited; write it plainly")
    return found
