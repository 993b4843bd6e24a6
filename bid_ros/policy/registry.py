"""Families of policies by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.registry import Registry, collect
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Capabilities, Policy, PolicyFamily
from bid_ros.policy.runtimes.base import Runtime
from bid_ros.policy.runtimes.registry import build_runtime
from bid_ros.policy.spaces.policy import SpacedPolicy
from bid_ros.policy.spaces.view import network_task

FAMILIES: Final[Registry[PolicyFamily]] = Registry(
    "family of policies", "bid_ros.policies", lambda: collect(__package__, "FAMILY"), BundleError
)


def load_policy(bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> Policy:
    """Return the policy of a bundle. Where the bundle has a space, the family meets the task in the network's terms.

    Args:
        bundle: a checked bundle.
        task: the task it was checked against.
        runtime: a runtime, or a name for :func:`bid_ros.policy.runtimes.registry.build_runtime`.
        threads: inference threads of a runtime given by name.

    Raises:
        BundleError: a graph cannot be loaded, or does not fit the family and the task.
        BidError: the runtime cannot be used.
    """
    load = FAMILIES.find(bundle.family).load
    policy = load(bundle, network_task(bundle.space, task) if bundle.space else task, runtime, threads)
    if not isinstance(getattr(policy, "capabilities", None), Capabilities):
        raise BundleError(
            f"a policy of the family {bundle.family} has no attribute 'capabilities'; valid is a Capabilities of "
            "bid_ros.policy.base, which took the place of has_starts, has_gradients, made_up_rows and history"
        )
    return SpacedPolicy(policy, bundle.space, task) if bundle.space else policy


def most_samples(bundle: Bundle) -> int | None:
    """Return the largest number of samples that a bundle's policy has for a decision; None: it draws any number."""
    return FAMILIES.find(bundle.family).most_samples(bundle.settings)


def drawn_samples(bundle: Bundle, samples: int) -> int:
    """Return how many samples a bundle's policy draws for a decision that asks for ``samples``."""
    return min(samples, most_samples(bundle) or samples)


def start_policy(
    bundle: Bundle,
    task: Task,
    samples: int,
    runtime: str = "auto",
    threads: int = 1,
    engines: str | Path = "",
    fallback: str = "",
    say: Callable[[str], object] = print,
) -> Policy:
    """Return the policy of a bundle, warmed up for ``samples``.

    Args:
        bundle: a checked bundle.
        task: the task it was checked against.
        samples: N.
        runtime, threads, engines: see :func:`bid_ros.policy.runtimes.registry.build_runtime`.
        fallback: runtime that takes over if ``runtime`` cannot be used; empty: none.
        say: takes a sentence about that.

    Raises:
        BidError: (or its subclass BundleError) the bundle does not fit, or the runtime cannot be used and there is no
            fallback.
    """
    try:
        policy = load_policy(bundle, task, build_runtime(runtime, threads, engines), threads)
        policy.warm_up(samples)
    except BidError as error:
        if not fallback:
            raise
        say(f"{error}; as it was told to, the policy starts on runtime '{fallback}'")
        return start_policy(bundle, task, samples, fallback, threads, engines)
    return policy
