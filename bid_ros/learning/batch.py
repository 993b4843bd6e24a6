"""Batches of training samples from a data set that stays in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import seen_by_network
from bid_ros.core.task import Task
from bid_ros.learning.augmentation import forget_history, jitter, offset_vectors, shift_images
from bid_ros.learning.config import AugmentConfig
from bid_ros.learning.windows import (
    NARROWEST,
    action_normaliser,
    goal_columns,
    goal_observed,
    normaliser,
    observation_normalisers,
    per_rad,
    row_goals,
    window_rows,
)
from bid_ros.policy.anchor import ActionReference, action_anchor, check_reference
from bid_ros.policy.base import Bundle
from bid_ros.policy.committed import rolled_features
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.recording.dataset import Dataset


@dataclass(frozen=True, eq=False)
class Batch:
    """B training samples on the training device, float32.

    Attributes:
        images: per camera ``(B, To, h, w, channels)`` in [-0.5, 0.5].
        vectors: per feature ``(B, To, S)`` normalised.
        actions: ``(B, H, D)`` normalised.
        goals: ``(B, 3)``, relative like the action's position, normalised. None for a task without a goal.
        forgotten: ``(B,)``, whether the newest observation stands in for those before it.
    """

    images: dict[str, torch.Tensor]
    vectors: dict[str, torch.Tensor]
    actions: torch.Tensor
    goals: torch.Tensor | None
    forgotten: NDArray[np.bool_]


class TrainingData:
    """Windows of a data set, normalised. Images stay as they are stored until they are used.

    Attributes:
        observation: normaliser per vector feature; action: of the actions, relative to ``reference``.
        goal: normaliser of the goals, relative in the same way. None for a task without a goal.
        owners: ``(W,)``, episode of each window.

    Args:
        dataset: the rows.
        task: layout of its features.
        reference: origin of the action positions.
        bundle: a policy with whose normalisers the data are normalised, instead of with their own ranges.
        longest_delay: steps by which the state may be rolled forward, see :mod:`bid_ros.policy.committed`.

    Raises:
        RecordingError: the data set does not fit the task, or has no complete window.
        BidError: the task has no position for ``reference``.
    """

    def __init__(
        self,
        dataset: Dataset,
        task: Task,
        reference: ActionReference = "base",
        bundle: Bundle | None = None,
        longest_delay: int = 0,
    ) -> None:
        dataset.validate(task)
        check_reference(task, reference)
        self.observation: Mapping[str, LinearNormaliser] = (
            observation_normalisers(dataset, task) if bundle is None else bundle.observation
        )
        self._task, self._reference, self._dataset = task, reference, dataset
        self._steps, self._commanded = task.observation_steps, dataset.actions
        self._images = {item.name: (item, dataset.observations[item.name]) for item in task.cameras}
        self._vectors = {name: item.normalise(dataset.observations[name]) for name, item in self.observation.items()}
        self._per_rad = {item.name: per_rad(self.observation[item.name], item) for item in task.vectors}
        self._rows, self.owners = window_rows(
            dataset.episode_ends, dataset.truncated, task.observation_steps, task.horizon + longest_delay
        )
        if len(self._rows) == 0:
            raise RecordingError(
                f"data set has no complete window of {task.horizon} rows: every episode is cut off early"
            )
        self._rolled = {item.name: own for item, own in rolled_features(task)} if longest_delay else {}
        self._ahead = {
            name: self.observation[name].normalise(dataset.actions[:, own]) for name, own in self._rolled.items()
        }
        self._anchors = action_anchor(task, reference, dataset.observations, (dataset.rows,))  # of every row
        self._row_goals, windows = row_goals(dataset, task), np.arange(len(self._rows))
        delayed = [self._relative(windows, np.full(len(windows), delay)) for delay in range(longest_delay + 1)]
        actions = np.concatenate([relative for relative, _ in delayed])
        self.action: LinearNormaliser = (
            action_normaliser(actions, task, each_row=reference == "tool") if bundle is None else bundle.action
        )
        self._actions = self.action.normalise(delayed[0][0])
        goals = [relative for _, relative in delayed if relative is not None]
        self.goal: LinearNormaliser | None = normaliser(np.concatenate(goals), NARROWEST["position"]) if goals else None
        self._goals = self.goal.normalise(goals[0]) if self.goal is not None else None

    def __len__(self) -> int:
        """Return W, the number of windows."""
        return len(self._rows)

    def batch(
        self,
        windows: NDArray[np.int64],
        device: torch.device,
        augment: AugmentConfig | None = None,
        seed: int = 0,
        delays: NDArray[np.int64] | None = None,
    ) -> Batch:
        """Return the samples of ``windows`` ``(B,)``, images augmented if ``augment`` says how, as ``seed`` decides.

        ``delays`` ``(B,)``: steps by which the state is rolled forward, and by which a chunk begins later. None: 0.
        """
        rows = self._rows[windows]
        columns = np.tile(np.arange(self._steps), (len(windows), 1))
        if augment is not None:
            columns = forget_history(columns, augment.history, np.random.default_rng([seed, 1]))
        seen = np.take_along_axis(rows, columns, axis=1)
        images, vectors = {}, {}
        for index, (name, (item, values)) in enumerate(self._images.items()):
            images[name] = _images(item, values[seen], device, augment, seed + index)
        for index, (name, values) in enumerate(self._vectors.items()):
            deviation = 0.0 if augment is None else augment.state + augment.angles * self._per_rad[name]
            newest = values[seen]
            if delays is not None and name in self._rolled:
                newest = self._later(name, rows, columns + delays[:, None])
            offset = offset_vectors(newest, deviation, np.random.default_rng(seed + index))
            vectors[name] = torch.from_numpy(offset).to(device)
        actions, goals = self._chunks_of(windows, delays)
        return Batch(
            images=images,
            vectors=vectors,
            actions=torch.from_numpy(actions).to(device),
            goals=None if goals is None else torch.from_numpy(goals).to(device),
            forgotten=(seen != rows[:, : self._steps]).any(axis=1),
        )

    def _relative(
        self, windows: NDArray[np.int64], delays: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return chunks ``(B, H, D)`` that begin ``delays`` ``(B,)`` later, and goals, from the state of that time."""
        task, rows, past, at = self._task, self._rows[windows], self._steps - 1, np.arange(len(windows))
        newest = {item.name: self._dataset.observations[item.name][rows[:, past]] for item in task.vectors}
        for name, own in self._rolled.items():
            ahead = self._commanded[rows[at, past + delays - 1], own]
            newest[name] = np.where(delays[:, None] > 0, ahead, newest[name])
        anchors = action_anchor(task, self._reference, newest, (len(windows),))
        whole = np.take_along_axis(rows, delays[:, None] + np.arange(task.horizon), axis=1)
        actions, goals, columns = self._commanded[whole] - anchors[:, None], self._row_goals, goal_columns(task)
        if goals is None:
            return actions, None
        goals = goals[rows[:, past]] - (anchors[:, columns] if columns is not None else 0.0)
        if columns is None and self._reference == "tool":
            goals = goals - newest[goal_observed(task)]
        return actions, goals

    def _later(self, name: str, rows: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a state at steps ``(B, To)`` of the windows ``rows``; after the newest one it is where actions led."""
        past = self._steps - 1
        seen = self._vectors[name][np.take_along_axis(rows, np.minimum(steps, past), axis=1)]
        ahead = self._ahead[name][np.take_along_axis(rows, np.maximum(steps - 1, 0), axis=1)]
        return np.where(steps[..., None] > past, ahead, seen)

    def _chunks_of(
        self, windows: NDArray[np.int64], delays: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return normalised chunks and goals."""
        if delays is None:
            return self._actions[windows], None if self._goals is None else self._goals[windows]
        actions, goals = self._relative(windows, delays)
        known = None if goals is None or self.goal is None else self.goal.normalise(goals)
        return self.action.normalise(actions), known

    def chunks(self, windows: NDArray[np.int64]) -> torch.Tensor:
        """Return the chunks that begin at each observation step of ``windows`` ``(B,)``: ``(B, To, R, D)``.

        R is ``horizon - (observation_steps - 1)``. Each chunk is relative to the observation of its own step, and
        normalised as if that was the newest one. In main memory.
        """
        rows, steps = self._rows[windows], self._steps
        ahead = np.lib.stride_tricks.sliding_window_view(rows, rows.shape[1] - steps + 1, axis=1)
        relative = self._commanded[ahead] - self._anchors[rows[:, :steps], None]
        return torch.from_numpy(self.action.rows(steps - 1).normalise(relative))


def _images(
    feature: Feature, frames: NDArray[Any], device: torch.device, augment: AugmentConfig | None, seed: int
) -> torch.Tensor:
    """Return images of a feature as networks take them. Light does not change distances, so these are only shifted."""
    if augment is not None:
        frames = shift_images(frames, augment.shift, np.random.default_rng(seed))
    images = scale_images(torch.from_numpy(seen_by_network(feature, frames)).to(device))
    if augment is None or feature.depth is not None:
        return images
    return jitter(images, augment, torch.Generator(device).manual_seed(seed))


def scale_images(images: torch.Tensor) -> torch.Tensor:
    """Return uint8 images as float32 in [-0.5, 0.5]; distances are so. Training and the exported graph both use it."""
    if images.is_floating_point():
        return images
    return images.to(torch.float32).mul_(1 / 255).sub_(0.5)
