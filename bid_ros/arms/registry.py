"""Arms by name, and their configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from bid_ros.arms.base import Arm, Dynamics
from bid_ros.arms.franka_config import FrankaConfig
from bid_ros.arms.gripper import GripperThresholds
from bid_ros.arms.robotiq import RobotiqConfig
from bid_ros.arms.ur_config import UrConfig
from bid_ros.errors import ArmError

ArmConfig: TypeAlias = FrankaConfig | UrConfig

NESTED: Final[Mapping[type, Mapping[str, type]]] = {
    FrankaConfig: {"dynamics": Dynamics, "gripper_thresholds": GripperThresholds},
    UrConfig: {"dynamics": Dynamics, "gripper_thresholds": GripperThresholds, "gripper": RobotiqConfig},
}
SET_BY_CALLER: Final = ("address", "twin")
CONFIGS: Final[Mapping[str, type[ArmConfig]]] = {"franka": FrankaConfig, "ur": UrConfig}


def build_arm(name: str, config: ArmConfig) -> Arm:
    """Return the driver ``name`` for ``config``, not yet connected.

    Drivers are imported here, so that nobody needs the libraries of a robot they do not have.

    Raises:
        ArmError: no such arm, a configuration of another one, or its library is not installed.
    """
    kind = _kind(name)
    if not isinstance(config, kind):
        raise ArmError(f"arm '{name}' was given a {type(config).__name__}; valid is a {kind.__name__}")
    return _franka(config) if isinstance(config, FrankaConfig) else _ur(config)


def load_arm_config(path: str | Path, address: str, twin: bool, name: str = "franka") -> ArmConfig:
    """Read the configuration file of the arm ``name``; with ``twin`` its section ``twin`` replaces fields.

    Raises:
        ArmError: no such arm, or the file is missing, is not YAML, has an unknown field or an impossible value.
    """
    kind, path = _kind(name), Path(path)
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ArmError(f"arm configuration {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ArmError(f"arm configuration {path} is not valid YAML: {' '.join(str(error).split())}") from error
    try:
        return _parse(kind, content, address, twin)
    except ArmError as error:
        raise ArmError(f"arm configuration {path}: {error}") from error


def _kind(name: str) -> type[ArmConfig]:
    if name not in CONFIGS:
        raise ArmError(f"arm '{name}' does not exist; valid are {', '.join(CONFIGS)}")
    return CONFIGS[name]


def _franka(config: FrankaConfig) -> Arm:
    try:
        from bid_ros.arms.franka import FrankaArm
    except ImportError as error:
        raise ArmError(f"arm 'franka' needs the Python package franky-control: {error}") from error
    return FrankaArm(config)


def _ur(config: UrConfig) -> Arm:
    try:
        from bid_ros.arms.ur import UrArm
    except ImportError as error:
        raise ArmError(f"arm 'ur' needs the Python package ur-rtde: {error}") from error
    return UrArm(config)


def _parse(kind: type[ArmConfig], content: object, address: str, twin: bool) -> ArmConfig:
    data = dict(_mapping(content, "the file"))
    for_twin = _mapping(data.pop("twin", {}), "twin")
    values = {**data, **(for_twin if twin else {})}
    valid = [item.name for item in fields(kind) if item.name not in SET_BY_CALLER]
    for key in (*data, *for_twin):
        if key not in valid:
            raise ArmError(f"unknown field '{key}'; valid are {', '.join(valid)}, and twin")
    try:
        return kind(address=address, twin=twin, **{key: _value(kind, key, value) for key, value in values.items()})
    except TypeError as error:
        raise ArmError(f"a value has the wrong type: {error}") from error


def _value(kind: type[ArmConfig], key: str, value: Any) -> Any:
    if key in NESTED[kind] and value is not None:
        return NESTED[kind][key](**_mapping(value, key))
    return tuple(value) if isinstance(value, list) else value


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ArmError(f"{where} is {value!r}; valid is a mapping of fields")
    return value
