"""A real policy bundle in a few kilobytes, for tests that need a policy but not a trained one.

It asks the arm to stay where it is: every action row is the newest observed value of the same name, plus a little
of the sampling noise, so candidates differ; the weak policy's differ more. Images move the first action value by
up to 2 % of its range, so that they matter. The manifest is written by hand here, apart from the package's own
writer, which makes it a check on the reader.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

from bid_ros.core.feature import Feature
from bid_ros.core.task import Task

SPREADS = {"strong": 0.05, "weak": 0.2}
DIFFUSION = {
    "train_steps": 100,
    "beta_schedule": "squaredcos_cap_v2",
    "prediction": "sample",
    "sampling_steps": 8,
    "clip": 1.0,
}


def make_tiny_bundle(path: str | Path, task: Task, weak: bool = True, steps: int = 0, **changes: Any) -> Path:
    """Write a bundle for ``task`` into the folder ``path`` and return it; ``changes`` replace manifest fields.

    Its networks see the task's observation steps, or ``steps`` and then say so in a space.
    """
    folder = Path(path)
    if steps:
        space = {"observation_steps": steps, "past_rows": task.observation_steps - 1}
        changes = {"format": 2, "space": space, **changes}
    folder.mkdir(parents=True, exist_ok=True)
    strengths = ("strong", "weak") if weak else ("strong",)
    graphs: dict[str, Any] = {"weak": None}
    for strength in strengths:
        graphs[strength] = {part: f"{strength}_{part}.onnx" for part in ("encoder", "denoiser")}
        seen = replace(task, observation_steps=steps or task.observation_steps)
        onnx.save(encoder_model(seen), folder / graphs[strength]["encoder"])
        onnx.save(denoiser_model(task, SPREADS[strength]), folder / graphs[strength]["denoiser"])
    names = sorted(name for pair in graphs.values() if pair for name in pair.values())
    manifest = {
        "format": 1,
        "name": "tiny",
        "task": task.name,
        "task_signature": task.signature(),
        "observation_steps": task.observation_steps,
        "horizon": task.horizon,
        "action_dim": task.action_dim,
        "normalisation": {
            "observation": {item.name: _range(task, (item,)) for item in task.vectors},
            "action": _range(task, task.action),
        },
        "action_spread": [0.1] * task.action_dim,
        "diffusion": dict(DIFFUSION),
        "graphs": graphs,
        "files": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names},
        "provenance": {"command": "make_tiny_bundle"},
    }
    write_manifest(folder, {**manifest, **changes})
    return folder


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write ``bundle.yaml``."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # several times as fast
    (folder / "bundle.yaml").write_text(yaml.dump(manifest, Dumper=dumper, sort_keys=False))


def encoder_model(task: Task) -> onnx.ModelProto:
    """Condition (1, D + cameras): the newest vectors in the order of the actions, then each image's mean in 0..1."""
    nodes, inputs, parts = [], [], []
    constants = {"newest": np.array([-1], np.int64), "row": np.array([1, -1], np.int64), "white": np.float32(255)}
    for item in task.observation:
        kind = TensorProto.UINT8 if item.kind == "image" else TensorProto.FLOAT
        inputs.append(helper.make_tensor_value_info(item.name, kind, [task.observation_steps, *item.shape]))
    observed = {item.name for item in task.vectors}
    for item in task.action:
        if item.name in observed:
            nodes.append(helper.make_node("Gather", [item.name, "newest"], [f"now_{item.name}"], axis=0))
        else:
            constants[f"now_{item.name}"] = np.zeros((1, item.size), np.float32)
        parts.append(f"now_{item.name}")
    # A graph drops inputs it does not use, and the contract wants every feature as an input.
    for item in [item for item in task.vectors if item.name not in {action.name for action in task.action}]:
        nodes += _scalar(item.name, f"extra_{item.name}")
        parts.append(f"extra_{item.name}")
    for item in task.cameras:
        nodes.append(helper.make_node("Cast", [item.name], [f"float_{item.name}"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Div", [f"float_{item.name}", "white"], [f"unit_{item.name}"]))
        nodes += _scalar(f"unit_{item.name}", f"mean_{item.name}")
        parts.append(f"mean_{item.name}")
    nodes.append(helper.make_node("Concat", parts, ["condition"], axis=1))
    return _model(nodes, inputs, ("condition", [1, _condition_size(task)]), constants)


def denoiser_model(task: Task, spread: float) -> onnx.ModelProto:
    """Prediction: hold + spread (sample - hold), with the images' means and a trace of the step in the first value."""
    size, extra = task.action_dim, _condition_size(task) - task.action_dim
    chunk = ["N", task.horizon, size]
    # Stored in half precision, as shipped bundles are.
    mix = np.zeros((size + extra, size), np.float16)
    mix[:size] = np.eye(size)
    mix[size:, 0] = 0.02
    first = np.zeros(size, np.float32)
    first[0] = 1e-5
    constants = {"mix": mix, "spread": np.float32(spread), "first": first}
    nodes = [
        helper.make_node("Cast", ["mix"], ["mix32"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["condition", "mix32"], ["still"]),
        helper.make_node("Cast", ["step"], ["step32"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["step32", "first"], ["trace"]),
        helper.make_node("Add", ["still", "trace"], ["goal"]),
    ]
    return denoiser_towards_goal(nodes, constants, chunk, size + extra)


def denoiser_towards_goal(
    nodes: list[Any], constants: dict[str, Any], chunk: list[Any], condition: int
) -> onnx.ModelProto:
    """Prediction: goal + spread (sample - goal); ``nodes`` make ``goal``, ``constants`` hold ``spread``."""
    inputs = [
        helper.make_tensor_value_info("sample", TensorProto.FLOAT, chunk),
        helper.make_tensor_value_info("step", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("condition", TensorProto.FLOAT, [1, condition]),
    ]
    nodes = [
        *nodes,
        helper.make_node("Sub", ["sample", "goal"], ["away"]),
        helper.make_node("Mul", ["away", "spread"], ["some"]),
        helper.make_node("Add", ["some", "goal"], ["prediction"]),
    ]
    return _model(nodes, inputs, ("prediction", chunk), constants)


def _condition_size(task: Task) -> int:
    actions = {item.name for item in task.action}
    return task.action_dim + len(task.cameras) + sum(item.name not in actions for item in task.vectors)


def _scalar(source: str, target: str) -> list[onnx.NodeProto]:
    mean = helper.make_node("ReduceMean", [source], [f"all_{target}"], keepdims=0)
    return [mean, helper.make_node("Reshape", [f"all_{target}", "row"], [target])]


def _model(nodes: list[Any], inputs: list[Any], output: tuple[str, list[Any]], constants: Any) -> onnx.ModelProto:
    result = helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, [result], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _range(task: Task, items: tuple[Feature, ...]) -> dict[str, list[float]]:
    low: list[float] = []
    high: list[float] = []
    for item in items:
        if item.kind == "position":
            low += task.limits.workspace_min
            high += task.limits.workspace_max
        elif item.kind == "points":
            low += [task.limits.workspace_min[0]] * item.size
            high += [task.limits.workspace_max[0]] * item.size
        elif item.kind == "gripper":
            low.append(task.limits.gripper_min)
            high.append(task.limits.gripper_max)
        else:
            bound = 1.0 if item.kind == "rotation_6d" else 3.2
            low += [-bound] * item.size
            high += [bound] * item.size
    return {"minimum": [float(value) for value in low], "maximum": [float(value) for value in high]}
