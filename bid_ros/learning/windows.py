"""What training takes from a data set, NumPy only: windows of rows, ranges, and goals.

The goal of a demonstration is the label of the auxiliary task that trains the image encoder. The denoising loss alone
trains it little, because most of a chunk follows from the tool's own position. The auxiliary task is to predict where
the demonstration will next close or open the gripper. So the encoder must find that place in the images: the cup to
grasp, then where to put it. The label comes from the recorded actions alone, so it needs no ground truth and works on a
real robot. The head is not exported.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.recording.dataset import Dataset

VALIDATION_WINDOWS: Final = 512
# The narrowest range that is mapped to [-1, 1], in the feature's unit. Otherwise the sensor noise of a dimension that
# hardly moves in the data would be scaled to the full range.
NARROWEST: Final = {"position": 0.02, "rotation_6d": 0.1, "gripper": 0.01, "joints": 0.05}
NARROWEST_OTHER: Final = 1e-3
# The same for what is observed. A tool that no demonstration turns still turns a little on a robot: narrow ranges would
# show the policy a value that it never learned from. A rotation's entries keep their scale.
NARROWEST_OBSERVED: Final = {**NARROWEST, "rotation_6d": 2.0, "joints": 0.5}


def window_rows(
    episode_ends: NDArray[np.int64],
    truncated: NDArray[np.bool_],
    observation_steps: int,
    horizon: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of every window, and the episode each belongs to.

    Each row ``t`` is the current row of one window. The window has the ``horizon`` rows from
    ``t - (observation_steps - 1)`` on. The policy observes its first ``observation_steps`` rows. Rows before an episode
    repeat its first row, rows after it the last row (Chi et al., "Diffusion Policy", RSS 2023). For an episode that was
    cut off the later rows are unknown, so only its complete windows are used.

    Args:
        episode_ends: ``(E,)``, index one past each episode's last row.
        truncated: ``(E,)``, whether the episode went on after its last row.
        observation_steps: To.
        horizon: H.

    Returns:
        Rows ``(W, H)`` and episodes ``(W,)``.
    """
    rows: list[NDArray[np.int64]] = []
    owners: list[NDArray[np.int64]] = []
    start = 0
    offsets = np.arange(horizon) - (observation_steps - 1)
    for episode, end in enumerate(episode_ends.tolist()):
        window = np.arange(start, end)[:, None] + offsets
        if truncated[episode]:
            window = window[window[:, -1] < end]
        rows.append(np.clip(window, start, end - 1))
        owners.append(np.full(len(window), episode))
        start = end
    return np.concatenate(rows).astype(np.int64), np.concatenate(owners).astype(np.int64)


def held_out_episodes(episodes: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Return ``(E,)``, True for the held-out episodes.

    At least one of two or more episodes is held out unless ``share`` is 0, and never all.
    """
    held = np.zeros(episodes, dtype=np.bool_)
    if share > 0 and episodes > 1:
        count = min(max(1, round(share * episodes)), episodes - 1)
        held[np.random.default_rng([seed, episodes]).permutation(episodes)[:count]] = True
    return held


def batch_windows(count: int, batch: int, step: int, seed: int) -> NDArray[np.int64]:
    """Return ``(batch,)``: the windows, of ``count``, that step ``step`` trains on.

    Each epoch visits every window once, in its own order. The result depends only on the arguments. So a resumed run
    continues with exactly the same batches.
    """
    places = np.arange(step * batch, (step + 1) * batch)
    chosen = np.empty(batch, dtype=np.int64)
    for epoch in np.unique(places // count):
        here = places // count == epoch
        order = np.random.default_rng([seed, int(epoch)]).permutation(count)
        chosen[here] = order[places[here] % count]
    return chosen


def spread_windows(windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return at most ``VALIDATION_WINDOWS`` of the windows, evenly spread."""
    count = min(len(windows), VALIDATION_WINDOWS)
    chosen: NDArray[np.int64] = windows[np.linspace(0, len(windows) - 1, count).round().astype(np.int64)]
    return chosen


def observation_normalisers(dataset: Dataset, task: Task) -> dict[str, LinearNormaliser]:
    """Return the normaliser of each vector feature, in the task's order."""
    return {
        feature.name: normaliser(dataset.observations[feature.name], _narrowest((feature,), NARROWEST_OBSERVED))
        for feature in task.vectors
    }


def action_normaliser(windows: NDArray[np.float64], task: Task, each_row: bool) -> LinearNormaliser:
    """Return the normaliser of the D action values.

    Args:
        windows: ``(W, H, D)`` actions of the training windows, relative to the policy's reference.
        task: layout of the actions.
        each_row: whether each of the H rows has a range of its own.
    """
    narrowest = _narrowest(task.action)
    if not each_row:
        return normaliser(windows.reshape(-1, task.action_dim), narrowest)
    rows = [normaliser(windows[:, row], narrowest) for row in range(windows.shape[1])]
    return LinearNormaliser(np.stack([row.minimum for row in rows]), np.stack([row.maximum for row in rows]))


def action_spread(dataset: Dataset, task: Task) -> NDArray[np.float64]:
    """Return ``(D,)``: standard deviation of the actions, task units, at least a tenth of the narrowest range."""
    spread: NDArray[np.float64] = np.maximum(dataset.actions.std(axis=0), _narrowest(task.action) / 10)
    return spread


def normaliser(values: NDArray[np.float64], narrowest: NDArray[np.float64] | float) -> LinearNormaliser:
    """Return the normaliser of values ``(T, ...)``. No range is below ``narrowest``."""
    flat = values.reshape(len(values), -1)
    low, high = flat.min(axis=0), flat.max(axis=0)
    half = np.maximum(high - low, narrowest) / 2
    centre = (low + high) / 2
    return LinearNormaliser(centre - half, centre + half)


def per_rad(normaliser: LinearNormaliser, feature: Feature) -> NDArray[np.float32]:
    """Return by how much each normalised column ``(S,)`` changes with a rad. 0: the feature is no angle."""
    if feature.kind not in ("rotation_6d", "joints"):
        return np.zeros(feature.size, np.float32)
    return (2.0 / (normaliser.maximum - normaliser.minimum)).astype(np.float32)


def _narrowest(features: tuple[Feature, ...], ranges: Mapping[str, float] = NARROWEST) -> NDArray[np.float64]:
    return np.concatenate([np.full(item.size, ranges.get(item.kind, NARROWEST_OTHER)) for item in features])


def goal_columns(task: Task) -> slice | None:
    """Return the action columns of the goal position. None if the task has no image or commands no position."""
    return task.columns("position") if task.cameras else None


def goal_observed(task: Task) -> str:
    """Return the observed position that tells the goal where a task commands joints, not a position; else nothing."""
    if not task.cameras or task.columns("joints") is None or task.columns("position") is not None:
        return ""
    return next((item.name for item in task.vectors if item.kind == "position"), "")


def goal_size(task: Task) -> int:
    """Return the number of values of the goal, 0 if there is none."""
    columns = goal_columns(task)
    if columns is not None:
        return int(columns.stop - columns.start)
    return 3 if goal_observed(task) else 0


def row_goals(dataset: Dataset, task: Task) -> NDArray[np.float64] | None:
    """Return ``(T, 3)``: commanded tool position, m, at the next command to close or open the gripper.

    Of a task that commands joints it is the observed one.

    The row of the command itself counts as next. After the last command the goal stays at its position. Without any
    command it is the last position. A demonstration that a gap cut into several episodes counts as one. None where
    :func:`goal_size` is 0.
    """
    position, gripper, observed = goal_columns(task), task.columns("gripper"), goal_observed(task)
    if position is None and not observed:
        return None
    places = dataset.observations[observed] if position is None else dataset.actions[:, position]
    goal = np.empty(dataset.rows, dtype=np.int64)
    is_open = np.zeros(dataset.rows, dtype=np.bool_)
    if gripper is not None:
        width = dataset.actions[:, gripper.start]
        is_open = width > (width.min() + width.max()) / 2
    owner = np.repeat(dataset.demonstrations, np.diff(dataset.episode_ends, prepend=0))
    for rows in np.split(np.arange(dataset.rows), np.flatnonzero(np.diff(owner)) + 1):
        goal[rows] = rows[0] + _next_switch(is_open[rows])
    goals: NDArray[np.float64] = np.asarray(places[goal], dtype=np.float64)
    return goals


def _next_switch(is_open: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row at or after each row ``(T,)`` at which ``is_open`` changes; the last such row, or the last row, else."""
    rows = np.arange(len(is_open))
    switches = np.flatnonzero(is_open[1:] != is_open[:-1]) + 1
    if not len(switches):
        return np.full(len(is_open), rows[-1])
    found: NDArray[np.int64] = switches[np.minimum(np.searchsorted(switches, rows), len(switches) - 1)]
    return found
