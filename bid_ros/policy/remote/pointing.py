"""Writes a small bundle that points to a policy server."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.core.errors import BundleError, RemoteError
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.ranges import Ranges, task_ranges
from bid_ros.policy.remote.config import REMOTE, RemoteConfig
from bid_ros.policy.remote.dial import read_key
from bid_ros.policy.remote.link import Link
from bid_ros.policy.remote.policy import LARGEST


def ask_metadata(settings: RemoteConfig, limit_s: float) -> dict[str, Any]:
    """Return what a server says of itself. Raises RemoteError if it does not within ``limit_s``, s."""
    heard: dict[str, Any] = {}
    key = read_key(settings.api_key_file)
    link = Link(settings.address, LARGEST, heard.update, key, settings.certificate)
    try:
        link.connect(limit_s)
    finally:
        link.close()
    return heard


def write_remote_bundle(folder: Path, task: Task, settings: RemoteConfig, said: Mapping[str, Any]) -> Bundle:
    """Write a bundle of the family ``remote`` and return it as it is loaded.

    Decoders weigh actions by their spread in the training data, which ``bid serve`` tells. Of another server it is
    unknown: an eighth of the range that the task's limits allow stands for it.

    Args:
        folder: where; it is made.
        task: of the policy.
        settings: address and so on; what a server tells of its policy is taken from ``said``.
        said: see :func:`own_words`.

    Raises:
        BundleError: the server's bundle is of another task, or the folder holds something already.
        RemoteError: what the server says is not valid.
    """
    if said and said.get("task_signature") != task.signature():
        raise BundleError(
            f"policy server {settings.address} serves task '{said.get('task')}'; task '{task.name}' is another one, or "
            "another version of it"
        )
    if folder.exists() and any(folder.iterdir()):
        raise BundleError(f"{folder} is not empty; valid is a new folder")
    try:
        observation, action, spread = _told(said) if said else task_ranges(task)
        serves, name = (str(said["sha256"]), f"{said['name']}_remote") if said else ("", folder.name)
        weights = {str(key): float(value) for key, value in said.get("action_weights", {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RemoteError(f"policy server {settings.address} describes its bundle badly: {error!r}") from error
    folder.mkdir(parents=True, exist_ok=True)
    starts, gradients = said.get("has_starts") is not False, said.get("has_gradients") is True
    most = said.get("most_samples")
    config = replace(settings, serves=serves, starts=starts, gradients=gradients, most_samples=most)
    return write_bundle_manifest(
        folder,
        task,
        name=name,
        observation=observation,
        action=action,
        action_spread=spread,
        settings=config,
        graphs={"strong": {}, "weak": {} if said.get("has_weak") else None},
        provenance={"command": "bid remote", "spread": "of its data" if said else "assumed from the task's limits"},
        family=REMOTE,
        action_weights=weights,
    )


def _told(said: Mapping[str, Any]) -> Ranges:
    observation = {str(name): LinearNormaliser(**item) for name, item in said["observation"].items()}
    return observation, LinearNormaliser(**said["action"]), np.array(said["action_spread"], dtype=np.float64)
