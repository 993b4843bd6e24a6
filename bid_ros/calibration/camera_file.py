"""Writes fields of one camera into a camera file, and leaves every other word of it as it is, comments too."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from bid_ros.cameras.config import load_cameras
from bid_ros.core.errors import CalibrationError
from bid_ros.core.files import replace_text
from bid_ros.core.settings import TWIN, load_yaml
from bid_ros.core.yaml_text import value_of, with_fields
from bid_ros.system.folder import System

FILE: Final = "cameras.yaml"


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
    where = value_of(root, camera) if isinstance(root, yaml.MappingNode) else None
    if not isinstance(where, yaml.MappingNode):
        raise CalibrationError(f"{FILE} has no camera '{camera}'; valid is a mapping of its fields")
    wanted = dict(fields)
    if twin:
        section = value_of(where, TWIN)
        if section is None:
            wanted = {TWIN: {"source": TWIN, **fields}}
        elif not isinstance(section, yaml.MappingNode):
            raise CalibrationError(f"{FILE}: twin of camera '{camera}' is no mapping; valid are its fields")
        elif where.flow_style:  # braces in braces
            wanted = {TWIN: {**load_yaml(text)[camera][TWIN], **fields}}
        else:
            where = section
    new = with_fields(text, where, wanted, before=TWIN)
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
