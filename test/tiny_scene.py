"""A simulated task in a few lines, for tests of the bench: a point that is to reach another one.

With the policy of ``tiny_bundle``, which asks for the newest observed value of the feature named as the action, the
point goes to the block.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import yaml
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper
from tiny_bundle import denoiser_towards_goal, make_tiny_bundle, write_manifest

from bid_ros.bench.scene import BenchScene, BenchSetup
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task, parse_task

TASK = {
    "name": "tiny",
    "robot": "none",
    "rate_hz": 10,
    "observation_steps": 2,
    "horizon": 16,
    "observation": [{"name": "block", "kind": "position"}, {"name": "agent", "kind": "position"}],
    "action": [{"name": "block", "kind": "position"}],
    "limits": {"workspace_min": [0, 0, 0], "workspace_max": [512, 512, 512]},
}


@dataclass(frozen=True, eq=False)
class PointState:
    agent: NDArray[np.float64]
    block: NDArray[np.float64]

    @property
    def coverage(self) -> float:
        return float(max(0.0, 1 - np.linalg.norm(self.agent - self.block) / 400))


class PointEnv:
    """Moves a tenth of the way to the action, at most 12 px a step; the block drifts."""

    def __init__(self, drift: float = 0.0) -> None:
        self._drift = np.array([drift, drift, 0.0])

    def reset(self, seed: int) -> PointState:
        rng = np.random.default_rng(seed)
        return self.set_state([*rng.uniform(100, 400, 2), 200], [*rng.uniform(150, 350, 2), 200])

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> PointState:
        self._state = PointState(np.array(agent, dtype=np.float64), np.array(block, dtype=np.float64))
        return self._state

    def step(self, action: ArrayLike) -> PointState:
        move = 0.1 * (np.asarray(action) - self._state.agent)
        length = float(np.linalg.norm(move))
        move *= min(1.0, 12 / length) if length else 1.0
        return self.set_state(self._state.agent + move, self._state.block + self._drift)


def observe(state: PointState) -> dict[str, NDArray[np.float64]]:
    return {"block": state.block, "agent": state.agent}


def observe_nothing(state: PointState) -> dict[str, NDArray[np.float64]]:
    raise BidError("the camera is off")


def score(coverage: float) -> float:
    return min(1.0, coverage / 0.95)


def render(state: PointState) -> NDArray[np.uint8]:
    picture = np.full((32, 32, 3), 255, np.uint8)
    for point, color in ((state.agent, (47, 111, 219)), (state.block, (120, 120, 120))):
        column, row = np.clip(point[:2] / 16, 0, 31).astype(int)
        picture[row, column] = color
    return picture


def tiny_task() -> Task:
    return parse_task(TASK)


def tiny_setup(folder: Path, weak: bool = True) -> BenchSetup:
    """With a denoiser that, as trained ones do, treats every sample on its own."""
    task = tiny_task()
    bundle = make_tiny_bundle(folder, task, weak=weak)
    replace_denoiser(bundle, "strong", denoiser(task, 0.05))
    if weak:
        replace_denoiser(bundle, "weak", denoiser(task, 0.2))
    return BenchSetup(bundle, task, BenchScene("tiny", PointEnv, observe, score, render, "nearness"), runtime="onnx")


def replace_denoiser(bundle: Path, strength: str, model: onnx.ModelProto) -> None:
    """Write another denoiser into a bundle, and its hash."""
    name = f"{strength}_denoiser.onnx"
    onnx.save(model, str(bundle / name))
    manifest = yaml.safe_load((bundle / "bundle.yaml").read_text())
    manifest["files"][name] = hashlib.sha256((bundle / name).read_bytes()).hexdigest()
    write_manifest(bundle, manifest)


def denoiser(task: Task, spread: float) -> onnx.ModelProto:
    """Prediction: block + spread (sample - block), with a trace of the step."""
    chunk, size = ["N", task.horizon, task.action_dim], task.action_dim + 1
    constants = {
        "mix": np.eye(size, task.action_dim, dtype=np.float32),
        "rows": np.array([-1, 1, task.action_dim], np.int64),
        "column": np.array([-1, 1, 1], np.int64),
        "spread": np.float32(spread),
        "little": np.float32(1e-5),
    }
    nodes = [
        helper.make_node("MatMul", ["condition", "mix"], ["flat"]),
        helper.make_node("Reshape", ["flat", "rows"], ["hold"]),
        helper.make_node("Cast", ["step"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["number", "little"], ["small"]),
        helper.make_node("Reshape", ["small", "column"], ["trace"]),
        helper.make_node("Add", ["hold", "trace"], ["goal"]),
    ]
    return denoiser_towards_goal(nodes, constants, chunk, size)
