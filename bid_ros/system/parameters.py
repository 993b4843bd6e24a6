"""Parameter files: read, and held against what the nodes declare before any of them starts.

Nodes declare their parameters themselves and refuse others when they start. The schema of ``nodes.yaml`` says the same
without ROS: a test compares the two.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Final

from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.settings import parse_settings, read_yaml, settings
from bid_ros.core.topics import check_namespace
from bid_ros.system.run import RunArguments

COMMON: Final[Mapping[str, Mapping[str, Any]]] = {
    "robot": {"type": "string", "description": "whose system this is; default: the namespace without its slash"},
    "frame_prefix": {"type": "string", "description": "precedes the name of every frame; default: the namespace and /"},
    "use_sim_time": {"type": "boolean", "description": "work with the time of /clock", "default": False},
}
"""Parameters of every node."""
FORMER: Final[Mapping[str, str]] = {"company_wait_s": "required_wait_s", "person": "human"}
"""Parameters that had another name, and their names of today."""
QOS: Final = "qos_overrides"
QOS_NAME: Final = re.compile(rf"{QOS}\.(/[\w/]+)\.(publisher|subscription)(_\w+)?\.(\w+)")
QOS_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "reliability": ("reliable", "best_effort"),
    "durability": ("volatile", "transient_local"),
    "depth": (),
    "deadline": (),
    "lifespan": (),
}
"""Policies that a parameter overrides, with their valid words; without words: whole numbers, of times in ns."""
Value = bool | int | float | str
KINDS: Final[Mapping[str, Any]] = {"boolean": bool, "integer": int, "number": float, "string": str, "array": list}


@settings
class NodeParameters:
    """Parameters of one node, in the format of ROS.

    Attributes:
        ros__parameters: parameters by name.
    """

    ros__parameters: dict[str, Value | list[Value]] = field(default_factory=dict)


@settings
class NodesSettings:
    """The content of ``nodes.yaml``. The arguments of a run replace these parameters.

    Attributes:
        arm, camera, episode, monitor, policy, recorder, safety, teleop, twin: parameters of this node.
    """

    arm: NodeParameters = NodeParameters()
    camera: NodeParameters = NodeParameters()
    episode: NodeParameters = NodeParameters()
    monitor: NodeParameters = NodeParameters()
    policy: NodeParameters = NodeParameters()
    recorder: NodeParameters = NodeParameters()
    safety: NodeParameters = NodeParameters()
    teleop: NodeParameters = NodeParameters()
    twin: NodeParameters = NodeParameters()


def load_parameters(path: str | Path, prefix: str = "") -> dict[str, Mapping[str, Any]]:
    """Read a parameter file.

    Args:
        path: path of the file.
        prefix: namespace that the names of the nodes may begin with.

    Returns:
        Parameters by node, for every node.

    Raises:
        BidError: the file is missing or not a parameter file, or names an unknown node or parameter.
    """
    what = "parameter file"
    content = read_yaml(path, what) or {}
    if isinstance(content, dict):
        names = [str(name).removeprefix(prefix) for name in content]
        if twice := [name for name in names if names.count(name) > 1]:
            raise BidError(f"{what} {path}: node '{twice[0]}' stands there twice; valid is once")
        content = {
            name: _flat(section, f"{what} {path}") for name, section in zip(names, content.values(), strict=True)
        }
    found = parse_settings(NodesSettings, content, f"{what} {path}")
    parameters = {node: section.ros__parameters for node, section in vars(found).items()}
    for node, given in parameters.items():
        check_declared(f"{what} {path}", node, given)
    return parameters


def _flat(section: Any, where: str) -> Any:
    """Return the section of a node with the full names of its parameters."""
    if not isinstance(section, dict) or not isinstance(section.get("ros__parameters"), dict):
        return section
    return {**section, "ros__parameters": flattened(section["ros__parameters"], where)}


def flattened(parameters: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, Any]:
    """Return parameters by their full names: ROS writes groups of them as nested mappings.

    Raises:
        BidError: two of them have one full name, as ``a.b`` and ``b`` in the group ``a``; the sentence begins with
            ``where``.
    """
    flat: dict[str, Any] = {}
    for name, value in parameters.items():
        found = (
            flattened(value, where, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
        )
        if twice := flat.keys() & found.keys():
            raise BidError(f"{where}: parameter '{min(twice)}' stands there twice; valid is once")
        flat |= found
    return flat


def check_declared(where: str, node: str, parameters: Mapping[str, Any]) -> None:
    """Hold the parameters of a node in a file against those that it declares.

    Args:
        where: of the file, for the sentence.
        node: its name.
        parameters: by full name.

    Raises:
        BidError: a parameter is unknown, has the wrong type or lies outside its range.
    """
    known = _declared()[node]
    for name, value in parameters.items():
        if name.startswith(f"{QOS}."):
            check_override(where, name, value)
            continue
        if name not in known:
            raise BidError(f"{where}: {unknown_parameter(node, name, known)}")
        kind = KINDS[known[name]["type"]]
        if type(value) is not kind:
            raise BidError(f"{where}: parameter '{name}' of node '{node}' is {value!r}; valid is a {kind.__name__}")
        low, high = known[name].get("minimum"), known[name].get("maximum")
        if low is not None and high is not None:
            check_range(f"{where}: node '{node}'", name, value, low, high, BidError)


def unknown_parameter(node: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence about a parameter that a node does not have, with its name of today if it had another."""
    if name in FORMER:
        return f"parameter '{name}' of node '{node}' is now '{FORMER[name]}'"
    return f"node '{node}' has no parameter '{name}'; valid are {', '.join(known)}"


def check_override(where: str, name: str, value: Any) -> None:
    """Raise BidError unless a parameter ``qos_overrides.TOPIC.publisher.POLICY`` has a valid name and value."""
    found = QOS_NAME.fullmatch(name)
    if found is None or found[4] not in QOS_VALUES:
        form = f"{QOS}./TOPIC.publisher.POLICY, or subscription, with one of {', '.join(QOS_VALUES)}"
        raise BidError(f"{where}: '{name}' is no quality of service; valid is {form}")
    words = QOS_VALUES[found[4]]
    if words and value not in words:
        raise BidError(f"{where}: {name} is {value!r}; valid are {', '.join(words)}")
    if not words and (type(value) is not int or value < 1):
        raise BidError(f"{where}: {name} is {value!r}; valid is a whole number of 1 or more")


@cache
def _declared() -> dict[str, dict[str, Any]]:
    """Return the schema of each parameter by node."""
    schema = json.loads(share("config", "schemas", "nodes.json").read_text())
    sections = {node: section["properties"]["ros__parameters"] for node, section in schema["properties"].items()}
    return {node: section["properties"] for node, section in sections.items()}


def given_parameters(
    arguments: RunArguments, set_already: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the parameters in the file of a run's arguments, by node.

    Args:
        arguments: of the run.
        set_already: parameters of each node of the run, which the arguments set.

    Raises:
        BidError: the file is not a parameter file, names an unknown node, or sets what the arguments set.
    """
    if not arguments.parameters:
        return {}
    file = arguments.parameters
    everything = load_parameters(file, f"{check_namespace(arguments.namespace)}/")
    found = {node: parameters for node, parameters in everything.items() if parameters}
    for node, parameters in found.items():
        if node not in set_already:
            raise BidError(f"parameter file {file} names the node '{node}'; valid are {', '.join(set_already)}")
        if both := set_already[node].keys() & parameters:
            raise BidError(f"parameter file {file} sets '{min(both)}' of {node}; valid is to set it by the arguments")
    return found
