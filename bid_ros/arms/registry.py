"""Arms by name, and their configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.arms.base import Arm, Dynamics
from bid_ros.arms.franka_config import FrankaConfig
from bid_ros.arms.gripper import GripperThresholds
from bid_ros.errors import ArmError

NESTED: Final[Mapping[str, type]] = {"dynamics": Dynamics, "gripper_thresholds": GripperThresholds}
SET_BY_CALLER: Final = ("address", "twin")
ARMS: Final = ("franka",)


def build_arm(name: str, config: FrankaConfig) -> Arm:
    """Return the driver ``name`` for ``config``, not yet connected.

    Drivers are imported here, so that nobody needs the libraries of a robot they do not have.

    Raises:
        ArmError: no such arm, or its library is not installed.
    """
    if name not in ARMS:
        raise ArmError(f"arm '{name}' does not exist; valid are {', '.join(ARMS)}")
    try:
        from bid_ros.arms.franka import FrankaArm
    except ImportError as error:
        raise ArmError(f"arm 'franka' needs the Python package franky-control: {error}") from error
    return FrankaArm(config)


def load_arm_config(path: str | Path, address: str, twin: bool) -> FrankaConfig:
    """Read an arm's configuration file; with ``twin`` the fields in its section ``twin`` replace the others.

    Raises:
        ArmError: the file is missing, is not YAML, has an unknown field or an impossible value.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ArmError(f"arm configuration {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ArmError(f"arm configuration {path} is not valid YAML: {' '.join(str(error).split())}") from error
    try:
        return _parse(content, address, twin)
    except ArmError as error:
        raise ArmError(f"arm configuration {path}: {error}") from error


def _parse(content: object, address: str, twin: bool) -> FrankaConfig:
    data = dict(_mapping(content, "the file"))
    for_twin = _mapping(data.pop("twin", {}), "twin")
    values = {**data, **(for_twin if twin else {})}
    valid = [item.name for item in fields(FrankaConfig) if item.name not in SET_BY_CALLER]
    for key in (*data, *for_twin):
        if key not in valid:
            raise ArmError(f"unknown field '{key}'; valid are {', '.join(valid)}, and twin")
    try:
        return FrankaConfig(address=address, twin=twin, **{key: _value(key, value) for key, value in values.items()})
    except TypeError as error:
        raise ArmError(f"a value has the wrong type: {error}") from error


def _value(key: str, value: Any) -> Any:
    if key in NESTED:
        return NESTED[key](**_mapping(value, key))
    return tuple(value) if isinstance(value, list) else value


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ArmError(f"{where} is {value!r}; valid is a mapping of fields")
    return value
