"""Measures what the space of a bundle adds to a decision: the conversion of its chunks, and of its observation.

It needs no bundle and no network: the conversions alone run, on random chunks of the placing task.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.policy.publishable import publishable_rows
from bid_ros.policy.spaces.action import ActionConversion
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.grid import grid_of
from bid_ros.policy.spaces.observation import ObservationConversion
from bid_ros.policy.spaces.policy import rows_of
from bid_ros.system.folder import find_system

NEAR = {"reference": "observed", "axes": "tool"}
STEP = {"reference": "previous", "axes": "tool"}
GRIPPER = Part(feature="gripper_width")


def space(position: Part, rotation: Part, **more: object) -> Space:
    """Return a space that observes and acts with these parts; observed ones are absolute."""
    seen = (Part(feature="tool_position"), Part(feature="tool_rotation", form=rotation.form, order=rotation.order))
    inputs = (ObservedFeature(name="state", columns=(*seen, GRIPPER)),)
    return Space(observation=inputs, action=(position, rotation, GRIPPER), **more)  # type: ignore[arg-type]


POSITION = Part(feature="tool_position")
SPACES = {
    "other units": space(Part(feature="tool_position", scale=0.001), Part(feature="tool_rotation")),
    "quaternion": space(POSITION, Part(feature="tool_rotation", form="quaternion_xyzw")),
    "rotation vector": space(POSITION, Part(feature="tool_rotation", form="rotation_vector")),
    "Euler angles": space(POSITION, Part(feature="tool_rotation", form="euler", order="xyz")),
    "rows of the matrix, relative to the tool": space(
        Part(feature="tool_position", **NEAR), Part(feature="tool_rotation", form="rotation_6d_rows", **NEAR)
    ),
    "rotation vector, steps along the tool": space(
        Part(feature="tool_position", **STEP), Part(feature="tool_rotation", form="rotation_vector", **STEP)
    ),
    "the same at 15 Hz, interpolated": space(
        Part(feature="tool_position", **STEP),
        Part(feature="tool_rotation", form="rotation_vector", **STEP),
        rate_hz=15.0,
        horizon=25,
        past_rows=2,
    ),
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=32, help="strong and weak samples of a decision (default 32)")
    parser.add_argument("--rounds", type=int, default=500, help="conversions that are timed (default 500)")
    options = parser.parse_args()
    task = find_system("franka_place").task
    print(f"| space | {options.chunks} chunks, ms p50 | p99 | observation, ms p50 |")
    print("|---|---|---|---|")
    for name, described in SPACES.items():
        chunks, seen = conversions(described, task, options.chunks)
        first, last = np.percentile(times(chunks, options.rounds), [50, 99])
        print(f"| {name} | {first:.2f} | {last:.2f} | {np.median(times(seen, options.rounds)):.2f} |")


def conversions(described: Space, task: Task, count: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return what converts chunks, and what converts an observation."""
    rng, grid = np.random.default_rng(0), grid_of(described, task)
    action, rows, observation = ActionConversion(described, task, grid), rows_of(described, task), None
    values = {item.name: rng.uniform(-1, 1, (grid.steps, item.size)) for item in task.vectors}
    values["tool_rotation"] = publishable_rows(
        np.concatenate([np.zeros((grid.steps, 3)), values["tool_rotation"], np.zeros((grid.steps, 1))], axis=1), task
    )[:, 3:9]
    observation, anchor = Observation(0, values), action.anchor(values)
    predicted, inputs = rng.uniform(-1, 1, (count, grid.horizon, action.size)), ObservationConversion(described, task)
    return lambda: rows.to_task(action.to_task(predicted, anchor)), lambda: inputs.to_network(observation)


def times(convert: Callable[[], object], rounds: int) -> list[float]:
    """Return durations in ms, without those of the first calls."""
    found = []
    for _ in range(rounds + 20):
        begin = time.perf_counter_ns()
        convert()
        found.append((time.perf_counter_ns() - begin) / 1e6)
    return found[20:]


if __name__ == "__main__":
    main()
