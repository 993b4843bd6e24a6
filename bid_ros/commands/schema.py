"""``bid schema``: JSON schemas with which editors complete and check the files of a system."""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bid_ros.core.schema import json_schema, with_twin
from bid_ros.core.task import Task
from bid_ros.robots.registry import ROBOTS
from bid_ros.system.arms import ArmsSettings
from bid_ros.system.folder import SystemSettings
from bid_ros.system.parameters import COMMON, QOS, NodesSettings

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def add_parser(verbs: Any) -> None:
    """Add ``schema``."""
    parser = verbs.add_parser(
        "schema",
        help="write JSON schemas of the configuration files",
        description="Write one JSON schema per configuration file, and one per robot, those of other packages too. An "
        "editor with a YAML language server completes from the one that a file's first line names.",
    )
    parser.add_argument("-o", "--out", default="schemas", help="folder to write (default schemas)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the schemas."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in (
        "task",
        "system",
        "arms",
        "cameras",
        "board",
        "nodes",
        "bundle",
        *(f"robot-{robot}" for robot in ROBOTS.names()),
    ):
        (out / f"{name}.json").write_text(schema_text(name))
        print(f"wrote {out / name}.json", file=sys.stderr)
    return 0


def schema_text(name: str) -> str:
    """Return the content of a schema file. Raises ArmError for ``robot-`` with the name of no robot."""
    if name.startswith("robot-"):
        schema = with_twin(json_schema(ROBOTS.find(name.removeprefix("robot-")).config))
    elif name in OTHERS:
        schema = OTHERS[name]()
    else:
        schema = json_schema({"task": Task, "system": SystemSettings, "arms": ArmsSettings}[name])
    return json.dumps({"$schema": DIALECT, **schema}, indent=1) + "\n"


def _cameras() -> dict[str, Any]:
    from bid_ros.cameras.config import CameraConfig  # OpenCV takes a while to import

    camera = with_twin(json_schema(CameraConfig))
    what = "The cameras that the task observes, by name."
    about = {"title": "Cameras", "description": what, "type": "object"}
    return {**about, "additionalProperties": camera, "$defs": camera.pop("$defs")}  # a reference begins at the root


def _nodes() -> dict[str, Any]:
    """Return the schema of a parameter file: the declared parameters of each node."""
    schema = json_schema(NodesSettings)
    for node, section in schema["properties"].items():
        declared = import_module(f"bid_ros.nodes.{node}_node").PARAMETERS
        names = {parameter.name: _parameter(parameter) for parameter in declared} | dict(COMMON)
        # Overrides of the quality of service have the names of topics.
        pattern: dict[str, Any] = {f"^{QOS}": {}}
        parameters = {
            "type": "object",
            "properties": names,
            "patternProperties": pattern,
            "additionalProperties": False,
        }
        section.clear()
        section |= {"type": "object", "properties": {"ros__parameters": parameters}, "additionalProperties": False}
    del schema["$defs"]
    return schema


def _bundle() -> dict[str, Any]:
    """Return the schema of a bundle.yaml, whose one further field is the section of the policy's family."""
    from bid_ros.policy.bundle import Manifest

    return {**json_schema(Manifest), "additionalProperties": {"type": "object"}}


def _board() -> dict[str, Any]:
    from bid_ros.calibration.board import Board  # OpenCV takes a while to import

    return json_schema(Board)


OTHERS: Final = {"board": _board, "cameras": _cameras, "nodes": _nodes, "bundle": _bundle}


def _parameter(parameter: Any) -> dict[str, Any]:
    ends = {"minimum": parameter.minimum, "maximum": parameter.maximum}
    said = {"description": parameter.description, "default": parameter.default}
    return {"type": TYPES[type(parameter.default)], **said, **{end: at for end, at in ends.items() if at is not None}}
