"""Whether the policy of a system suits its task, told before any process is started."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.system.description import NodeSpec


def check_policy(specs: Iterable[NodeSpec]) -> None:
    """Check that bundle, decoder and task fit.

    Raises:
        BidError: (one of its subclasses) the policy node would refuse them.
    """
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.decide import bundle_decoder

    for spec in specs:
        if spec.executable == "policy_node":
            wanted = spec.parameters
            task = load_task(wanted["task"])
            bundle = load_bundle(Path(wanted["bundle"]), task)
            rows = task.horizon - task.observation_steps + 1
            if not 1 <= wanted["action_horizon"] <= rows:
                raise BidError(
                    f"action_horizon is {wanted['action_horizon']}; valid is 1 to {rows}, the actions of a chunk"
                )
            bundle_decoder(wanted["decoder"], bundle, task, wanted["samples"], wanted["action_horizon"])
