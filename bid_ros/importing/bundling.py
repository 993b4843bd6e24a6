"""Writes an imported policy as a bundle."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from bid_ros.core.task import Task
from bid_ros.importing.graphs import write_graphs
from bid_ros.importing.matching import space_for
from bid_ros.importing.policy import ImportedPolicy, check_same
from bid_ros.learning.bundling import check_replaceable, replaced
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.spread import task_spread


def write_imported(
    strong: ImportedPolicy,
    weak: ImportedPolicy | None,
    out: str | Path,
    task: Task,
    name: str = "",
    given: Space | None = None,
) -> Bundle:
    """Write a bundle beside ``out``, compare it with PyTorch, and put it in place of an old one.

    Args:
        strong: the policy.
        weak: an earlier checkpoint of the same training. None: the bundle has no weak policy.
        out: folder of the bundle. An old bundle is replaced; anything else is refused.
        task: it will be used for.
        name: name of the bundle; default: name of its folder.
        given: which columns of the network are what; None: as the task's section ``data`` says.

    Raises:
        BidError: the policy does not fit the task, or the weak one is of another training.
        BundleError: ``out`` is not a bundle, or a graph differs from PyTorch.
    """
    folder = Path(out)
    check_replaceable(folder)
    space = space_for(strong, task, given)
    centre = (strong.action.maximum + strong.action.minimum) / 2
    if weak is not None:
        check_same(strong, weak)
    graphs: dict[str, dict[str, str] | None] = {"weak": None}
    differences: dict[str, dict[str, float]] = {}
    with replaced(folder) as new:
        for strength, policy in (("strong", strong), ("weak", weak)):
            if policy is not None:
                graphs[strength], differences[strength] = write_graphs(policy, new, strength)
        write_bundle_manifest(
            new,
            task,
            name=name or folder.name,
            observation=strong.observation,
            action=strong.action,
            action_spread=task_spread(space, task, centre, strong.action_spread),
            settings=strong.settings,
            family=strong.family,
            graphs=graphs,
            provenance=_provenance(strong, weak, differences),
            any_size=True,
            space=space,
        )
    return load_bundle(folder, task)


def _provenance(
    strong: ImportedPolicy, weak: ImportedPolicy | None, differences: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    sources = {"strong": strong.source} | ({} if weak is None else {"weak": weak.source})
    return {
        **strong.provenance,
        "imported": {"type": strong.kind, **sources},
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "weights": "float32",
        "torch": str(torch.__version__),
        "difference_to_pytorch": {key: dict(value) for key, value in differences.items()},
    }
