"""Rows of a data set that make one training sample. NumPy only."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

VALIDATION_WINDOWS: Final = 512


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
