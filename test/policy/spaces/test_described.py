"""The shipped policies, told in other spaces: the same chunks come out, and BID chooses the same.

``Retold`` stands between the shipped policy and :class:`SpacedPolicy`. It turns the network's columns into the task's
observation, and the shipped policy's chunks into the network's columns, with SciPy and homogeneous matrices: nothing of
it is the package's own conversion, which must undo it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import yaml
from installed import TORCH
from scipy.spatial.transform import Rotation
from space_samples import PLACE, ROOT, six

from bid_ros.core.observation import Observation
from bid_ros.core.task import load_task
from bid_ros.policy.agreement import random_observations
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.publishable import publishable_rows
from bid_ros.policy.registry import load_policy
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.policy import SpacedPolicy

SAME = 5e-6  # m, px or a number of a rotation: the networks compute in float32
DECISIONS = 3
PUSHT = load_task(ROOT / "config" / "pusht.yaml")
FORMS: dict[str, Callable[[Rotation], np.ndarray]] = {
    "rotation_6d": six,
    "rotation_6d_rows": lambda turn: turn.as_matrix()[:, :2].reshape(-1, 6),
    "matrix": lambda turn: turn.as_matrix().reshape(-1, 9),
    "quaternion_xyzw": lambda turn: turn.as_quat(),
    "quaternion_wxyz": lambda turn: turn.as_quat(scalar_first=True),
    "rotation_vector": lambda turn: turn.as_rotvec(),
    "euler": lambda turn: turn.as_euler("ZYX", degrees=True),
}


@dataclass(frozen=True)
class Retelling:
    """A space of the placing task, and how the network's columns follow from the task's.

    Attributes:
        form: of the rotation; counts: what position and rotation count from, and along which axes.
        rate: rows of the network for each of the task's. steps: that it observes.
        fraction: whether the gripper is a fraction, 1 closed.
    """

    form: str = "rotation_6d"
    reference: str = "absolute"
    axes: str = "base"
    rate: int = 1
    steps: int = 2
    fraction: bool = False
    scale: float = 1.0

    @property
    def space(self) -> Space:
        told: dict[str, Any] = {} if self.reference == "absolute" else {"reference": self.reference, "axes": self.axes}
        form: dict[str, Any] = {"form": self.form}
        if self.form == "euler":
            form |= {"order": "ZYX", "degrees": True}
        gripper: dict[str, Any] = {"form": "fraction", "open": 0.0, "closed": 1.0} if self.fraction else {}
        width = Part(feature="gripper_width", **gripper)
        turn = "x" if self.form.startswith("quaternion") else "w"
        state = (width, Part(feature="tool_rotation", positive=turn, **form), Part(feature="tool_position"))
        cameras = [ObservedFeature(name=f"images.{item.name}", camera=item.name) for item in reversed(PLACE.cameras)]
        return Space(
            observation=(*cameras, ObservedFeature(name="state", columns=state)),
            action=(
                width,
                Part(feature="tool_position", scale=self.scale, **told),
                Part(feature="tool_rotation", **form, **told),
            ),
            observation_steps=self.steps,
            past_rows=self.rate,
            horizon=16 * self.rate,
            rate_hz=float(PLACE.rate_hz * self.rate),
        )


class Retold:
    """A policy in the terms of a retelling, around the shipped one."""

    def __init__(self, policy: Any, told: Retelling) -> None:
        self._policy, self._told, self.runtime, self.has_weak = policy, told, policy.runtime, policy.has_weak
        self.capabilities = policy.capabilities

    def encode(self, observation: Observation, weak: bool = True) -> Any:
        told, state = self._told, observation.values["state"]
        width, turns, position = state[:, :1], _read(told.form, state[:, 1:-3]), state[:, -3:]
        values = {item.name: observation.values[f"images.{item.name}"] for item in PLACE.cameras}
        values["gripper_width"] = 0.08 * (1 - width) if told.fraction else width
        values |= {"tool_rotation": six(turns), "tool_position": position}
        own = {name: value[[-1 - told.rate, -1]] for name, value in values.items()}  # the shipped policy's two steps
        trail = [np.eye(4)] * len(state)
        for row in range(len(state)):
            trail[row] = _pose(turns[row].as_matrix(), position[row])
        return self._policy.encode(Observation(observation.stamp_ns, own), weak), trail

    def sample(self, encoded: Any, strong: int, weak: int, rng: Any, *_: Any) -> tuple[np.ndarray, np.ndarray | None]:
        drawn = self._policy.sample(encoded[0], strong, weak, rng)
        return tuple(None if chunks is None else self._retell(chunks, encoded[1]) for chunks in drawn)

    def _retell(self, chunks: np.ndarray, trail: list[np.ndarray]) -> np.ndarray:
        told = self._told
        dense = np.repeat(publishable_rows(chunks, PLACE), told.rate, axis=1)  # rows between are never looked at
        return np.stack([self._row_by_row(chunk, trail) for chunk in dense])

    def _row_by_row(self, chunk: np.ndarray, trail: list[np.ndarray]) -> np.ndarray:
        told, past, rows, before = self._told, self._told.rate, [], np.eye(4)
        for row, action in enumerate(chunk):
            first, second = action[3:6], action[6:9]
            pose = _pose(np.stack([first, second, np.cross(first, second)], axis=-1), action[:3])
            origin = {
                "absolute": None,
                "observed": trail[-1],
                "previous": trail[max(0, len(trail) - 1 - past + row)] if row <= past else before,
            }[told.reference]
            before = pose
            move, turn = pose[:3, 3], pose[:3, :3]
            if origin is not None and told.axes == "tool":
                near = np.linalg.inv(origin) @ pose
                move, turn = near[:3, 3], near[:3, :3]
            elif origin is not None:
                move, turn = move - origin[:3, 3], turn @ origin[:3, :3].T
            width = 1 - action[9:] / 0.08 if told.fraction else action[9:]
            columns = FORMS[told.form](Rotation.from_matrix(turn[None]))[0]
            rows.append(np.concatenate([width, move / told.scale, columns]))
        return np.array(rows)

    def warm_up(self, samples: int) -> None:
        self._policy.warm_up(samples)


TOLD = {
    "other order, names and steps": Retelling(steps=5),
    "rows of the matrix, millimetres": Retelling("rotation_6d_rows", scale=0.001),
    "whole matrix, fraction": Retelling("matrix", fraction=True),
    "quaternion xyzw": Retelling("quaternion_xyzw"),
    "quaternion wxyz, 20 Hz": Retelling("quaternion_wxyz", rate=2, steps=3),
    "rotation vector relative to the tool": Retelling("rotation_vector", "observed", "tool"),
    "Euler degrees, relative in the base frame": Retelling("euler", "observed"),
    "steps in the base frame": Retelling("rotation_vector", "previous"),
    "steps along the tool, 20 Hz": Retelling("quaternion_xyzw", "previous", "tool", rate=2, steps=3),
    "six numbers relative to the tool, 5 steps": Retelling("rotation_6d", "observed", "tool", steps=5, fraction=True),
}


@pytest.fixture(scope="module")
def shipped() -> tuple[Any, Any]:
    bundle = load_bundle(ROOT / "models" / "franka_place", PLACE)
    return bundle, load_policy(bundle, PLACE, "onnx")


@pytest.mark.parametrize("name", TOLD)
def test_the_placing_policy_is_the_same_in_another_space(shipped, name):
    bundle, policy = shipped
    told = TOLD[name]
    spaced = SpacedPolicy(Retold(policy, told), told.space, PLACE)
    wanted = DecisionMaker(policy, bundle_decoder("bid", bundle, PLACE, 8, 1), PLACE)
    found = DecisionMaker(spaced, bundle_decoder("bid", bundle, PLACE, 8, 1), PLACE)
    chosen = set()
    for observation in _reached(random_observations(bundle, PLACE, DECISIONS)):
        one = wanted.decide(observation)
        two = found.decide(_longer(observation, told))
        for mine, other in ((one.strong, two.strong), (one.weak, two.weak)):
            np.testing.assert_allclose(publishable_rows(other, PLACE), publishable_rows(mine, PLACE), atol=SAME)
        np.testing.assert_allclose(two.chunk.actions, one.chunk.actions, atol=SAME)
        assert two.choice.index == one.choice.index
        chosen.add(one.choice.index)
    assert len(chosen) > 1


@pytest.mark.parametrize(
    ("decoder", "runtime"),
    [("bid+warmstart", "onnx"), *(("rtc", name) for name in TORCH)],
)
def test_pusht_is_the_same_in_shares_of_its_table(tmp_path, decoder, runtime):
    """A real bundle of format 2: the same graphs in another unit.

    The first decision is sampled from noise, the next ones start from it or are drawn towards it.
    """
    bundle = load_bundle(ROOT / "models" / "pusht", PUSHT)
    told = load_bundle(_shares_of_the_table(tmp_path / "told"), PUSHT)
    wanted, found = (
        DecisionMaker(load_policy(item, PUSHT, runtime), bundle_decoder(decoder, item, PUSHT, 8, 1), PUSHT)
        for item in (bundle, told)
    )
    chosen = set()
    for observation in random_observations(bundle, PUSHT, 5):
        one, two = wanted.decide(observation), found.decide(observation)
        np.testing.assert_allclose(two.strong / 512, one.strong / 512, atol=SAME)
        assert two.choice.index == one.choice.index
        chosen.add(one.choice.index)
    assert len(chosen) > 1 or "bid" not in decoder


def _shares_of_the_table(folder):
    """Write the shipped bundle of Push-T as one whose network counts in shares of the table's 512 px."""
    import shutil

    shutil.copytree(ROOT / "models" / "pusht", folder)
    manifest = yaml.safe_load((folder / "bundle.yaml").read_text())
    ranges = manifest["normalisation"]
    for item in (*ranges["observation"].values(), ranges["action"]):
        for end in ("minimum", "maximum"):
            item[end] = [value / 512 for value in item[end]]
    parts = [{"feature": name, "scale": 512.0} for name in ("block_keypoints", "agent_position")]
    space = {"observation": [{"name": part["feature"], "columns": [part]} for part in parts], "action": parts[1:]}
    manifest.update(format=2, space=space)
    (folder / "bundle.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    return folder


def _reached(observations):
    """Make the observed rotations rotations: the training's range around one holds numbers that are none."""
    for item in observations:
        values = dict(item.values)
        values["tool_rotation"] = publishable_rows(
            np.concatenate([np.zeros((2, 3)), values["tool_rotation"], np.zeros((2, 1))], axis=1), PLACE
        )[:, 3:9]
        yield replace(item, values=values)


def _longer(observation, told):
    """Return the observation at the network's steps; those that the shipped policy does not see are others."""
    rng, found = np.random.default_rng(0), {}
    for name, value in observation.values.items():
        rows = np.repeat(value[:1], told.steps, axis=0)
        if name == "tool_position":
            rows = rows + rng.uniform(-0.01, 0.01, rows.shape)
        rows[[-1 - told.rate, -1]] = value
        found[name] = rows
    return replace(observation, values=found)


def _read(form: str, columns: np.ndarray) -> Rotation:
    if form == "rotation_6d":
        first, second = columns[:, :3], columns[:, 3:]
        return Rotation.from_matrix(np.stack([first, second, np.cross(first, second)], axis=-1))
    if form == "rotation_6d_rows":
        return _read("rotation_6d", columns).inv()
    if form == "matrix":
        return Rotation.from_matrix(columns.reshape(-1, 3, 3))
    if form == "rotation_vector":
        return Rotation.from_rotvec(columns)
    if form == "euler":
        return Rotation.from_euler("ZYX", columns, degrees=True)
    return Rotation.from_quat(columns, scalar_first=form == "quaternion_wxyz")


def _pose(turn: np.ndarray, position: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn, position
    return pose
