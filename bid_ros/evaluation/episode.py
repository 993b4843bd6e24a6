"""Episodes of a run: start poses, the log of decisions, and the summary it becomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bid_ros.evaluation.summary import EpisodeResult, RunSummary
from bid_ros.policy.bundle import bundle_sha256
from bid_ros.task import Task


class EpisodeStopped(Exception):
    """The run cannot go on. ``safety`` tells a stop by safety or arm from any other reason."""

    def __init__(self, reason: str, safety: bool) -> None:
        super().__init__(reason)
        self.safety = safety


def scene_of(task: Task, seed: int) -> NDArray[np.float64]:
    """Start position (3,) of the tool in m, base frame, drawn from the task's ``start`` box for a seed."""
    low, high = (np.asarray(task.start[key], dtype=np.float64) for key in ("tool_min", "tool_max"))
    return np.random.default_rng([seed, 1]).uniform(low, high)


class RunLog:
    """What a run collects while it goes."""

    def __init__(self) -> None:
        self.results: list[EpisodeResult] = []
        self.decision_ms: list[float] = []
        self.command_age_ms: list[float] = []
        self.missed = 0
        self._missed_before: int | None = None

    @property
    def decisions(self) -> int:
        """Decisions published during episodes."""
        return len(self.decision_ms)

    @property
    def successes(self) -> int:
        """Successful episodes."""
        return sum(result.success for result in self.results)

    def start_episode(self) -> None:
        """Begin an episode: misses are counted from its first decision on."""
        self._missed_before = None

    def add_decision(self, decision_ms: float, missed: int) -> None:
        """Add one decision; ``missed`` is the node's counter."""
        self.decision_ms.append(decision_ms)
        if self._missed_before is not None:
            self.missed += missed - self._missed_before
        self._missed_before = missed

    def recent_ms(self, percentile: float) -> float:
        """Percentile of the last hundred decision latencies, 0 before the first."""
        return float(np.percentile(self.decision_ms[-100:], percentile)) if self.decision_ms else 0.0

    def summary(
        self,
        *,
        task: str,
        decoder: str,
        samples: int,
        action_horizon: int,
        bundle: Path | None,
        moving: float,
        seed: int,
        hardware: str,
        safety_stop: str,
    ) -> RunSummary:
        """Return the summary of the run so far."""
        return RunSummary(
            task=task,
            decoder=decoder,
            samples=samples,
            action_horizon=action_horizon,
            bundle_sha256=bundle_sha256(bundle) if bundle is not None else "",
            moving=moving,
            seed=seed,
            hardware=hardware,
            results=tuple(self.results),
            decision_ms=tuple(self.decision_ms),
            command_age_ms=tuple(self.command_age_ms),
            missed=self.missed,
            safety_stop=safety_stop,
        )
