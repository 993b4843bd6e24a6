"""A policy of the family vqbet in a few kilobytes, for tests that need no trained one.

Its codes stand for one action each: code (i, j) asks for ``i / codes`` of the range in the first value and ``j /
codes`` in the others. The observation moves the logits a little. The weak policy's logits are flatter.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.vqbet.codes import VqBetSettings, forecast_size

CODES = 4


def make_tiny_vqbet(folder: Path, task: Task, weak: bool = True, width: int = 0) -> Bundle:
    """Write a bundle for a task without cameras into ``folder``. ``width``: of the forecast, if it shall be wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    graphs = {"strong": {"encoder": "strong_encoder.onnx", "decoder": "decoder.onnx"}, "weak": None}
    onnx.save(_encoder(task, 8.0, width), folder / "strong_encoder.onnx")
    onnx.save(_decoder(task), folder / "decoder.onnx")
    if weak:
        graphs["weak"] = {"encoder": "weak_encoder.onnx", "decoder": "decoder.onnx"}
        onnx.save(_encoder(task, 1.0, width), folder / "weak_encoder.onnx")
    ones = np.ones(task.action_dim)
    return write_bundle_manifest(
        folder,
        task,
        name="tiny_vqbet",
        observation={item.name: LinearNormaliser(-np.ones(item.size), np.ones(item.size)) for item in task.vectors},
        action=LinearNormaliser(0 * ones, 2 * ones),
        action_spread=0.1 * ones,
        settings=VqBetSettings(CODES, 0.5),
        graphs=graphs,
        provenance={},
        family="vqbet",
    )


def _encoder(task: Task, sharpness: float, width: int) -> onnx.ModelProto:
    rows, steps = task.horizon - task.observation_steps + 1, task.observation_steps
    size = width or forecast_size(CODES, rows, task.action_dim)
    total = sum(item.size for item in task.vectors) * steps
    weights = sharpness * np.random.default_rng(0).standard_normal((total, size)).astype(np.float32) / 4
    weights[:, CODES + CODES * CODES :] *= 0.01 / sharpness
    nodes, inputs, constants = row_of(task)
    nodes.append(helper.make_node("MatMul", ["all", "weights"], ["forecast"]))
    output = helper.make_tensor_value_info("forecast", TensorProto.FLOAT, [1, size])
    return model_of(nodes, inputs, output, constants | {"weights": weights})


def row_of(task: Task) -> tuple[list, list, dict]:
    """Return nodes that put all vectors of an observation into a row ``all``, their inputs, and their constants."""
    steps = task.observation_steps
    inputs = [helper.make_tensor_value_info(v.name, TensorProto.FLOAT, [steps, *v.shape]) for v in task.vectors]
    nodes = [helper.make_node("Reshape", [v.name, "row"], [f"flat_{v.name}"]) for v in task.vectors]
    nodes.append(helper.make_node("Concat", [f"flat_{v.name}" for v in task.vectors], ["all"], axis=1))
    return nodes, inputs, {"row": np.array([1, -1])}


def _decoder(task: Task) -> onnx.ModelProto:
    rows = task.horizon - task.observation_steps + 1
    table = np.zeros((CODES * CODES, rows, task.action_dim), np.float32)
    for first in range(CODES):
        table[first * CODES : (first + 1) * CODES, :, 0] = first / CODES
        table[first * CODES : (first + 1) * CODES, :, 1:] = np.arange(CODES)[:, None, None] / CODES
    nodes = [
        helper.make_node("MatMul", ["codes", "places"], ["index"]),
        helper.make_node("Gather", ["table", "index"], ["rows"], axis=0),
    ]
    inputs = [helper.make_tensor_value_info("codes", TensorProto.INT64, ["N", 2])]
    output = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["N", rows, task.action_dim])
    return model_of(nodes, inputs, output, {"table": table, "places": np.array([CODES, 1])})


def model_of(nodes, inputs, output, constants) -> onnx.ModelProto:
    """Return a checked model."""
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, [output], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model
