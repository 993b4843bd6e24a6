"""Episodes in which decoders differ, as films side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.cell import Cell
from bid_ros.bench.episode import Trace
from bid_ros.bench.results import Key
from bid_ros.bench.scene import Scene
from bid_ros.views.video import compose, write_gif

MOST_BYTES: Final = 700_000
_EVERY = 3  # steps a frame


def differing_episodes(
    cells: Sequence[Cell], rows: Mapping[Key, Mapping[str, Any]], count: int
) -> list[tuple[int, int]]:
    """Return (seed, episode) of those whose scores differ most between the cells, most first; all cells have them."""
    keys = [cell.key for cell in cells]
    scores: dict[tuple[int, int], list[float]] = {}
    for (key, seed, episode), row in rows.items():
        if key in keys:
            scores.setdefault((seed, episode), []).append(float(row["score"]))
    spread = {pair: max(found) - min(found) for pair, found in scores.items() if len(found) == len(keys) > 1}
    ordered = sorted(spread, key=lambda pair: (-spread[pair], pair))
    return [pair for pair in ordered if spread[pair] > 0][:count]


def film(traces: Sequence[Trace], scene: Scene) -> bytes:
    """Return a GIF of the traces side by side at triple speed; one that has ended shows its last state."""
    env = scene.make(0.0)
    length = max(len(trace.agents) for trace in traces)
    frames: list[NDArray[np.uint8]] = []
    for step in range(0, length + _EVERY - 1, _EVERY):
        panels = []
        for trace in traces:
            index = min(step, len(trace.agents) - 1)
            state = env.set_state(trace.agents[index].astype(np.float64), trace.blocks[index].astype(np.float64))
            panels.append(scene.render(state))
        frames.append(compose(*panels))
    with tempfile.TemporaryDirectory() as folder:
        return write_gif(frames, Path(folder) / "film.gif", fps=10, max_bytes=MOST_BYTES).read_bytes()
