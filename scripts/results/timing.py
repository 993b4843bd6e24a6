"""Times the stages of a decision. Procedures alternate in one run, so that other work meets all alike."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.observation import Observation
from bid_ros.core.task import Task

STAGES: Final = ("encode", "sample", "choose", "whole")
_RESAMPLES: Final = 2000

# (encode, sample, choose), ns
Durations = tuple[int, int, int]
Procedure = Callable[[Observation], Durations]
Interval = tuple[float, float, float]


@dataclass(frozen=True)
class StageTime:
    """Durations of a stage.

    Attributes:
        p50_ms, p99_ms: median and 99th percentile.
        ratio: of the reference's decisions on the same observations to it: median and its 95 % interval.
    """

    p50_ms: float
    p99_ms: float
    ratio: Interval


def stream_of_noise(task: Task, rng: np.random.Generator) -> Iterator[Observation]:
    """Yield observations of noise, one period apart: durations do not depend on what is seen.

    As in a run, all but the newest frames and values are those of the observation before.
    """
    values: dict[str, NDArray[Any]] = {}
    for stamp_ns in count(task.dt_ns, task.dt_ns):
        for item in task.observation:
            old = values[item.name][1:] if item.name in values else None
            shape = (task.observation_steps if old is None else 1, *item.shape)
            new = rng.integers(0, 256, shape, np.uint8) if item.kind == "image" else rng.uniform(0, 0.5, shape)
            values[item.name] = new if old is None else np.concatenate([old, new])
        yield Observation(stamp_ns, dict(values))


def alternate(
    procedures: Mapping[str, Procedure],
    task: Task,
    rounds: int,
    warm_up: int,
    between: Callable[[], None],
) -> dict[str, NDArray[np.float64]]:
    """Let every procedure decide on the same observations, in a new random order each round.

    Args:
        procedures: each decides, and returns the duration of its parts.
        task: whose observations to make up, one control period after the other.
        rounds: decisions of each procedure that count.
        warm_up: rounds before that do not count.
        between: called once a round.

    Returns:
        Per procedure ``(rounds, 4)``, ms: the stages in the order of :data:`STAGES`.
    """
    rng, names = np.random.default_rng(0), list(procedures)
    found: dict[str, list[tuple[int, ...]]] = {name: [] for name in names}
    for observation in islice(stream_of_noise(task, rng), warm_up + rounds):
        for place in rng.permutation(len(names)):  # whoever is first finds cold caches
            begin = time.perf_counter_ns()
            parts = procedures[names[place]](observation)
            found[names[place]].append((*parts, time.perf_counter_ns() - begin))
        between()
    return {name: np.array(rows[warm_up:], dtype=np.float64) / 1e6 for name, rows in found.items()}


def summarise(rows: Mapping[str, NDArray[np.float64]], reference: str) -> dict[str, dict[str, StageTime]]:
    """Return the durations of every stage by procedure. ``rows`` are those of :func:`alternate`."""
    return {
        name: {
            stage: StageTime(
                float(np.median(values[:, column])),
                float(np.quantile(values[:, column], 0.99)),
                median_ratio(values[:, column], rows[reference][:, column]),
            )
            for column, stage in enumerate(STAGES)
        }
        for name, values in rows.items()
    }


def median_ratio(first: NDArray[np.float64], second: NDArray[np.float64]) -> Interval:
    """Return the median of the paired ratios ``first / second`` and its 95 % bootstrap interval (median, low, high)."""
    ratios = first / second
    drawn = np.random.default_rng(0).integers(0, ratios.size, (_RESAMPLES, ratios.size))
    low, high = np.percentile(np.median(ratios[drawn], axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)
