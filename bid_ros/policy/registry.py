"""Families of policies by name."""

from typing import Final

from bid_ros.core.errors import BundleError
from bid_ros.core.registry import Registry, collect
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Policy, PolicyFamily
from bid_ros.policy.runtimes.base import Runtime

FAMILIES: Final[Registry[PolicyFamily]] = Registry(
    "family of policies", "bid_ros.policies", lambda: collect(__package__, "FAMILY"), BundleError
)


def load_policy(bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> Policy:
    """Return the policy of a bundle.

    Args:
        bundle: a checked bundle.
        task: the task it was checked against.
        runtime: a runtime, or a name for :func:`bid_ros.policy.runtimes.registry.build_runtime`.
        threads: inference threads of a runtime given by name.

    Raises:
        BundleError: a graph cannot be loaded, or does not fit the family and the task.
        BidError: the runtime cannot be used.
    """
    return FAMILIES.find(bundle.family).load(bundle, task, runtime, threads)
