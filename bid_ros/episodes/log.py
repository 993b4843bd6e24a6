"""Episodes of a run: start poses, the log of decisions, and the summary it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.episodes.summary import EpisodeResult, RunSummary
from bid_ros.policy.bundle import bundle_sha256


class EpisodeStopped(Exception):
    """The run cannot go on. ``safety`` is True if the safety node or the arm stopped it."""

    def __init__(self, reason: str, safety: bool = False) -> None:
        super().__init__(reason)
        self.safety = safety


def scene_of(task: Task, seed: int) -> NDArray[np.float64]:
    """Start position (3,) of the tool in m, base frame, drawn from the task's ``start`` box for a seed.

    A task without such a box starts in the middle of its workspace.
    """
    low, high = np.asarray(task.limits.workspace_min), np.asarray(task.limits.workspace_max)
    if task.start is None:
        low = high = (low + high) / 2
    else:
        low, high = np.asarray(task.start.tool_min), np.asarray(task.start.tool_max)
    return np.random.default_rng([seed, 1]).uniform(low, high)


class RunLog:
    """The record of a run in progress."""

    def __init__(self) -> None:
        self.results: list[EpisodeResult] = []
        self.decision_ms: list[float] = []
        self.command_age_ms: list[float] = []
        self.missed = 0
        self.decoders: dict[str, None] = {}
        self.decoder = ""  # of the episode, once it has decided
        self.samples = 0
        self._missed_before: int | None = None

    @property
    def decisions(self) -> int:
        """Number of decisions published during episodes."""
        return len(self.decision_ms)

    @property
    def successes(self) -> int:
        """Number of successful episodes."""
        return sum(result.success for result in self.results)

    def start_episode(self) -> None:
        """Begin an episode. Missed decisions count from its first decision on."""
        self._missed_before, self.decoder = None, ""

    def add_decision(self, decision_ms: float, missed: int, decoder: str, samples: int) -> None:
        """Add one decision. ``missed`` is the counter of the policy node."""
        self.decoders[decoder] = None
        self.decoder, self.samples = decoder, samples
        self.decision_ms.append(decision_ms)
        if self._missed_before is not None:
            self.missed += missed - self._missed_before
        self._missed_before = missed

    def recent_ms(self, percentile: float) -> float:
        """Return a percentile of the last hundred decision latencies; 0 before the first."""
        return float(np.percentile(self.decision_ms[-100:], percentile)) if self.decision_ms else 0.0

    def summary(self, *, decoder: str, samples: int, bundle: Path | None, **about: Any) -> RunSummary:
        """Return the summary of the run so far.

        Args:
            decoder, samples: of the run; they count if no decision was made.
            bundle: that decided; None for none.
            about: fields of :class:`bid_ros.episodes.summary.RunSummary` that do not come from the log.
        """
        return RunSummary(
            decoder=" then ".join(self.decoders) or decoder,
            samples=self.samples or samples,
            bundle_sha256=bundle_sha256(bundle) if bundle is not None else "",
            results=tuple(self.results),
            decision_ms=tuple(self.decision_ms),
            command_age_ms=tuple(self.command_age_ms),
            missed=self.missed,
            **about,
        )
