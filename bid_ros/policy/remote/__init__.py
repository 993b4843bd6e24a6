"""Policies elsewhere: a server samples, over openpi's websocket protocol. ``bid serve`` is such a server."""

from typing import Any, Final

from bid_ros.core.settings import parse_settings
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Policy, PolicyFamily
from bid_ros.policy.remote.config import REMOTE, RemoteConfig
from bid_ros.policy.runtimes.base import Runtime

OLD: Final = "connections"  # bundles had it once; a policy now has one connection


def _settings(content: Any) -> RemoteConfig:
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name != OLD}
    return parse_settings(RemoteConfig, content, REMOTE)


def _load(bundle: Bundle, task: Task, runtime: str | Runtime, threads: int) -> Policy:
    """Return the policy, connected. Runtime and threads are the server's own matter."""
    from bid_ros.policy.remote.policy import RemotePolicy

    return RemotePolicy(bundle, task)


FAMILY = PolicyFamily(REMOTE, (), _settings, _load, most_samples=lambda settings: settings.most_samples)
