"""Starts a system in its twin as ``bid up`` does, with what a fault needs changed before its nodes start.

It takes the path of a plan, which :class:`fault_campaign.system.Plan` writes.
"""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bid_ros.episodes.log import end_run
from bid_ros.system.description import NodeSpec, command_line, describe, environment
from bid_ros.system.folder import find_system
from bid_ros.system.preparation import prepare
from bid_ros.system.processes import supervise
from bid_ros.system.run import RunArguments

TWIN = "-m bid_ros.nodes twin_node"
TRACED = shlex.quote(str(Path(__file__).with_name("traced_twin.py")))


def main(file: Path) -> int:
    """Run the system of a plan until it ends; return its exit status."""
    plan = json.loads(file.read_text())
    system, arguments = find_system(plan["system"]), RunArguments(**plan["arguments"])
    specs = [*describe(system, arguments), *(NodeSpec(**spec) for spec in plan["further"])]
    changed, remapped = plan["parameters"], plan["remapped"]
    specs = [_changed(spec, changed.get(spec.name, {}), remapped.get(spec.name, {})) for spec in specs]
    out = Path(arguments.out)
    prepare(specs, out)
    commands = {
        spec.name: plan["before"].get(spec.name, "") + command_line(spec, out / "parameters").replace(TWIN, TRACED)
        for spec in specs
    }
    own = {"FAULT_TRACE": plan["trace"]}
    status = supervise(commands, environment((), out) | own, out / "logs", "episode")
    end_run(out)
    return status


def _changed(spec: NodeSpec, parameters: dict[str, Any], remapped: dict[str, str]) -> NodeSpec:
    both = {**spec.parameters, **parameters}
    return replace(spec, parameters=both, remapped={**spec.remapped, **remapped})


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
