"""Writes fields of one camera into a camera file, and leaves every other word of it as it is, comments too."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from bid_ros.cameras.config import load_cameras
from bid_ros.core.errors import CalibrationError
from bid_ros.core.files import replace_text
from bid_ros.core.settings import TWIN, load_yaml
from bid_ros.system.folder import System

FILE: Final = "cameras.yaml"
_WIDE: Final = 1 << 20  # characters: no value is broken over lines


def write_camera(system: System, camera: str, fields: Mapping[str, Any], twin: bool) -> dict[str, Any]:
    """Write fields of a camera into the ``cameras.yaml`` of a system's own folder; return their earlier values.

    The file is written whole, or not at all: the new one is read first, as the system would read it.

    Args:
        system: its folder. A file of a system that it is like is copied into it.
        camera: name of the camera.
        fields: by name.
        twin: into the camera's section ``twin``.

    Raises:
        BidError: the file is not valid, or cannot be written.
    """
    source, path = system.file(FILE), system.folder / FILE
    before = source.read_text()
    text = edited(before, camera, fields, twin)
    trial = path.with_name(f".{FILE}.trial")
    try:
        replace_text(trial, text)
        load_cameras(trial, [item.name for item in system.task.cameras], twin)
        trial.replace(path)
    except OSError as error:
        raise CalibrationError(
            f"{path} cannot be written ({error.strerror}); valid is a system in a folder of your own: bid new FOLDER"
        ) from error
    finally:
        trial.unlink(missing_ok=True)
    old = load_yaml(before)[camera]
    old = (old.get(TWIN) or {}) if twin else old
    return {name: old[name] for name in fields if name in old}


def edited(text: str, camera: str, fields: Mapping[str, Any], twin: bool) -> str:
    """Return the text of a camera file with other values of some fields.

    Raises:
        CalibrationError: the camera is not in it, or it is written in a way that cannot be edited.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    where = _value(root, camera) if isinstance(root, yaml.MappingNode) else None
    if not isinstance(where, yaml.MappingNode):
        raise CalibrationError(f"{FILE} has no camera '{camera}'; valid is a mapping of its fields")
    wanted = dict(fields)
    if twin:
        section = _value(where, TWIN)
        if section is None:
            wanted = {TWIN: {"source": TWIN, **fields}}
        elif not isinstance(section, yaml.MappingNode):
            raise CalibrationError(f"{FILE}: twin of camera '{camera}' is no mapping; valid are its fields")
        elif where.flow_style:  # braces in braces
            wanted = {TWIN: {**load_yaml(text)[camera][TWIN], **fields}}
        else:
            where = section
    new = _in_flow(text, where, wanted) if where.flow_style else _in_block(text, where, wanted)
    _check_rest(text, new, camera, fields, twin)
    return new


def _check_rest(before: str, after: str, camera: str, fields: Mapping[str, Any], twin: bool) -> None:
    """Raise CalibrationError unless two texts differ in these fields alone."""
    old, new = load_yaml(before), load_yaml(after)
    for content in (old, new):
        section = content[camera].setdefault(TWIN, {"source": TWIN}) if twin else content[camera]
        for name in fields:
            section.pop(name, None)
    if old != new:
        raise CalibrationError(f"{FILE}: camera '{camera}' is written in a way that cannot be edited; write it plainly")


def _value(mapping: yaml.MappingNode, name: str) -> Any:
    return next((value for key, value in mapping.value if key.value == name), None)


def _in_block(text: str, where: yaml.MappingNode, fields: Mapping[str, Any]) -> str:
    """Return the text with fields of a mapping of which each has its line."""
    changes: list[tuple[int, int, str]] = []
    indent = where.value[0][0].start_mark.column
    rest = dict(fields)
    for key, value in where.value:
        if key.value in rest:
            changes.append((value.start_mark.index, _end(value), _flow(rest.pop(key.value))))
    own = [value for key, value in where.value if key.value != TWIN] or [where.value[-1][1]]
    at = text.find("\n", max(map(_end, own)))
    at = len(text) if at < 0 else at
    lines = "".join(f"\n{' ' * indent}{name}: {_flow(value)}" for name, value in rest.items())
    return _changed(text, [*changes, (at, at, lines)])


def _in_flow(text: str, where: yaml.MappingNode, fields: Mapping[str, Any]) -> str:
    """Return the text with a mapping in braces, which becomes one of which each field has its line."""
    content = {key.value: text[value.start_mark.index : _end(value)] for key, value in where.value}
    content |= {name: _flow(value) for name, value in fields.items()}
    line = text[text.rfind("\n", 0, where.start_mark.index) + 1 : where.start_mark.index]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    lines = "".join(f"\n{indent}{name}: {value}" for name, value in content.items())
    begin = len(text[: where.start_mark.index].rstrip(" "))
    after = text[where.end_mark.index :].split("\n", 1)[0].rstrip()
    if after:  # a comment stays with the name
        return _changed(text, [(begin, where.end_mark.index + len(after), f" {after.strip()}{lines}")])
    return _changed(text, [(begin, where.end_mark.index, lines)])


def _end(node: Any) -> int:
    """Return where a value ends. PyYAML's own end of a block is where the next token begins, after comments."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=_WIDE, sort_keys=False)
    return str(text).removesuffix("\n").removesuffix("\n...")


def _changed(text: str, changes: list[tuple[int, int, str]]) -> str:
    for begin, end, new in sorted(changes, reverse=True):
        text = text[:begin] + new + text[end:]
    return text
