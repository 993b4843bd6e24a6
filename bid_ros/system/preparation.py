"""What every front end does before it starts the nodes of a system: check what can be checked, and make room."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.system.description import NodeSpec

# What a run leaves in its folder, at the latest when its first node has started.
WRITTEN: Final = ("logs", "parameters", "bag", "run.json")


def prepare(specs: Iterable[NodeSpec], out: Path) -> None:
    """Check a system before any of its processes starts, and move an earlier run out of its folder.

    Raises:
        BidError: what the policy node would refuse; one of its subclasses says which part.
    """
    check_policy(specs)
    _set_aside(out)


def check_policy(specs: Iterable[NodeSpec]) -> None:
    """Check that bundle, decoder and task fit, and that the runtime can be used.

    Raises:
        BidError: (one of its subclasses) the policy node would refuse them.
    """
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.decide import bundle_decoder
    from bid_ros.policy.runtimes.registry import missing, parse_runtime

    for spec in specs:
        if spec.executable == "policy_node":
            wanted = spec.parameters
            task = load_task(wanted["task"])
            bundle = load_bundle(Path(wanted["bundle"]), task)
            decoder = bundle_decoder(wanted["decoder"], bundle, task, wanted["samples"], wanted["action_horizon"])
            runtime = wanted.get("runtime", "auto")
            if getattr(decoder, "needs_gradient", False) and parse_runtime(runtime)[0] != "torch":
                raise BidError(
                    f"decoder '{decoder.name}' needs the network's gradient; the policy's runtime is '{runtime}', "
                    f"valid is torch, in the system's nodes.yaml or by --parameters"
                )
            problem = missing(runtime)
            if problem and not wanted.get("fallback_runtime"):
                raise BidError(f"the policy node cannot use runtime '{runtime}': {problem}")


def _set_aside(out: Path) -> None:
    """Move an earlier run out of the way, whether it ended well or in its start: nothing recorded is overwritten."""
    if not any((out / name).exists() for name in WRITTEN):
        return
    number = 1
    while (earlier := out.with_name(f"{out.name}.{number}")).exists():
        number += 1
    out.rename(earlier)
    print(f"moved the earlier run to {earlier}", file=sys.stderr)
