"""The first line of a run's ``events.jsonl``: what is started, with which limits."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.policy.bundle import bundle_sha256
from bid_ros.recording.events import append_event
from bid_ros.recording.provenance import software
from bid_ros.system.description import NodeSpec
from bid_ros.system.folder import POLICY, file_beside

EPISODE: Final = "episode"
ARM: Final = "arm"
FILES: Final = ("system.yaml", "task.yaml", "robot.yaml", "cameras.yaml", "nodes.yaml")
_DECIDED: Final = ("acting", "decoder", "samples", "action_horizon", "decision_rate_hz")
SAID: Final = (*_DECIDED, "moving", "slow", "shadow", "seed", "episodes")


def begin_events(specs: Sequence[NodeSpec], out: Path) -> None:
    """Write the first line: versions, robot or twin, bundle, limits, and the hash of each file of the system.

    Args:
        specs: nodes of the run. Without an episode node nothing moves, as in a replay, and nothing is written.
        out: folder of the run; it exists.

    Raises:
        BidError: the line cannot be written: a run must not move an arm without a log of what happened.
    """
    nodes = {spec.name: spec.parameters for spec in specs}
    if EPISODE not in nodes or ARM not in nodes:
        return
    try:
        append_event(out, "start", **_started(nodes))
    except OSError as error:
        raise BidError(f"nothing can be written to {out}: {error.strerror or error}") from error


def _started(nodes: dict[str, Any]) -> dict[str, Any]:
    episode, arm = nodes[EPISODE], nodes[ARM]
    file = Path(arm["task"])
    task, bundle = load_task(file), nodes.get(POLICY, {}).get("bundle", "")
    return {
        "software": software(),
        "system": str(file.absolute().parent),
        "files_sha256": {name: _sha256(file_beside(file, name)) for name in FILES},
        "task": task.name,
        "limits": asdict(task.limits),
        "robot": arm["arm"],
        "address": arm["robot_ip"],
        "twin": arm["twin"],
        "bundle": bundle,
        "bundle_sha256": bundle_sha256(bundle) if bundle else "",
        **{name: episode[name] for name in SAID if name in episode},
    }


def _sha256(file: Path) -> str:
    """Return the hash of a file; empty if there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
