"""Episodes in lockstep: at every step all that decide share the network calls."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.bench.cell import Unit
from bid_ros.bench.episode import BenchEpisode, EpisodePath
from bid_ros.bench.scene import BenchSetup
from bid_ros.bench.smoothness import SWITCH_SHARE, rms_jerk
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.correction import Correction


@dataclass(frozen=True, eq=False)
class UnitDone:
    """What a unit came to: a row of numbers and a path for each episode."""

    unit: Unit
    rows: list[dict[str, Any]]
    traces: list[EpisodePath]


class _Stopwatch:
    """Adds up the time of named parts, ns."""

    def __init__(self) -> None:
        self._last = time.monotonic_ns()
        self.total: dict[str, int] = {"encode": 0, "sample": 0, "choose": 0, "world": 0, "progress": 0}

    def lap(self, part: str) -> None:
        """Count the time since the last lap to ``part``."""
        now = time.monotonic_ns()
        self.total[part] += now - self._last
        self._last = now


def load_policy(setup: BenchSetup) -> BatchPolicy:
    """Return the policy of a set-up; BundleError if it, or its correction head, cannot be used."""
    bundle = load_bundle(setup.bundle, setup.task)
    correction = None if setup.correction is None else Correction(setup.correction, bundle, setup.task)
    return BatchPolicy(bundle, setup.task, setup.runtime, correction)


class UnitRunner:
    """Runs units; it loads the policy once.

    Args:
        setup: policy, task and scene.
        policy: the loaded policy, where it is in this process; None: it is loaded.
        advance: called with the work that was done.
    """

    def __init__(self, setup: BenchSetup, policy: BatchPolicy | None, advance: Callable[[float], object]) -> None:
        self._setup, self._policy, self._advance = setup, policy or load_policy(setup), advance

    def __call__(self, unit: Unit) -> UnitDone:
        """Run the episodes of a unit."""
        return run_unit(unit, self._setup, self._policy, self._advance)


def run_unit(
    unit: Unit,
    setup: BenchSetup,
    policy: BatchPolicy,
    advance: Callable[[float], object] = lambda work: None,
) -> UnitDone:
    """Run the episodes of a unit.

    Args:
        unit: what to run.
        setup: task and scene.
        policy: draws the samples.
        advance: called with the work that was done, or need not be: steps, each with its cell's effort.
    """
    switch = SWITCH_SHARE * float(np.linalg.norm(policy.bundle.action_spread))
    policies = policy.unbatched, switch, policy.correction
    episodes = [BenchEpisode(unit, index, setup, *policies) for index in unit.episodes]
    watch = _Stopwatch()
    while live := [episode for episode in episodes if not episode.over]:
        _decide(live, policy, watch)
        for episode in live:
            episode.act()
        watch.lap("world")
        # An episode that ends early leaves the rest of its steps undone.
        advance(unit.cell.effort * sum(1 + (unit.steps - item.steps if item.over else 0) for item in live))
        watch.lap("progress")
    rows = [_row(episode, episodes, watch, setup) for episode in episodes]
    return UnitDone(unit, rows, [item.trace() for item in episodes])


def _decide(live: Sequence[BenchEpisode], policy: BatchPolicy, watch: _Stopwatch) -> None:
    asked = [(episode, draft) for episode in live if (draft := episode.propose()) is not None]
    watch.lap("encode")
    if not asked:
        return
    samples = policy.sample([draft for _, draft in asked])
    watch.lap("sample")
    for (episode, draft), (strong, weak) in zip(asked, samples, strict=True):
        episode.accept(draft, strong, weak)
    watch.lap("choose")


def _row(
    episode: BenchEpisode, together: Sequence[BenchEpisode], watch: _Stopwatch, setup: BenchSetup
) -> dict[str, Any]:
    """Numbers of an episode. Times are means over the unit: parts of a shared call belong to no episode."""
    seconds = setup.task.dt_ns / 1e9
    decisions = max(1, sum(item.decisions for item in together))
    steps = max(1, sum(item.steps for item in together))
    times = {f"{part}_ms": watch.total[part] / 1e6 / decisions for part in ("encode", "sample", "choose")}
    return {
        "key": episode.cell.key,
        "cell": asdict(episode.cell),
        "seed": episode.seed,
        "episode": episode.index,
        "score": episode.score,
        "success": episode.score >= 1.0,
        "steps": episode.steps,
        "max_coverage": episode.coverage,
        "decisions": episode.decisions,
        "overlaps": len(episode.distances),
        "overlap_px": float(np.mean(episode.distances)) if episode.distances else None,
        "switches": episode.switches,
        "switches_per_s": episode.switches / max(seconds, episode.steps * seconds),
        "jerk": rms_jerk(episode.trace().commands, seconds),
        "jump_step": episode.jump_step if episode.cell.jump else None,
        **times,
        "world_ms": watch.total["world"] / 1e6 / steps,
    }
