"""A policy of the family act in a few kilobytes: each member's chunk is a linear function of the observation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tiny_vqbet import model_of, row_of

from bid_ros.core.task import Task
from bid_ros.policy.act.settings import ActSettings, member_role
from bid_ros.policy.base import Bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.spaces.view import network_task


def make_tiny_act(folder: Path, task: Task, members: int = 1, **changes) -> Bundle:
    """Write a bundle into ``folder``. ``changes`` replace arguments of the manifest.

    A task with cameras needs a ``space`` that leaves them out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    view = network_task(changes["space"], task) if "space" in changes else task
    roles = {}
    for number in range(1, members + 1):
        role = member_role("encoder", number)
        roles[role] = f"strong_{role}.onnx"
        onnx.save(_encoder(view, number), folder / roles[role])
    ones = np.ones(task.action_dim)
    given = {
        "name": "tiny_act",
        "observation": {item.name: LinearNormaliser(-np.ones(item.size), np.ones(item.size)) for item in view.vectors},
        "action": LinearNormaliser(0 * ones, 2 * ones),
        "action_spread": 0.1 * ones,
        "settings": ActSettings(members),
        "graphs": {"strong": roles, "weak": None},
        "provenance": {},
        "family": "act",
    }
    return write_bundle_manifest(folder, task, **(given | changes))


def _encoder(task: Task, seed: int) -> onnx.ModelProto:
    rows, steps = task.horizon - task.observation_steps + 1, task.observation_steps
    total = sum(item.size for item in task.vectors) * steps
    weights = np.random.default_rng(seed).standard_normal((total, rows * task.action_dim)).astype(np.float32) / 8
    nodes, inputs, constants = row_of(task)
    nodes.append(helper.make_node("MatMul", ["all", "weights"], ["chunk"]))
    output = helper.make_tensor_value_info("chunk", TensorProto.FLOAT, [1, rows * task.action_dim])
    return model_of(nodes, inputs, output, constants | {"weights": weights})
