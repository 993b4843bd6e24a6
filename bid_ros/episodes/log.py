"""Episodes of a run: start poses, results, and the log of decisions that becomes ``run.json``."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.files import replace_text, replacing
from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY, TASK, EpisodeOutcome, outcome_from_text
from bid_ros.core.percentiles import percentiles
from bid_ros.core.task import Task
from bid_ros.episodes.causes import outcome_of_end
from bid_ros.episodes.comparison import wilson_interval
from bid_ros.episodes.pauses import Pauses
from bid_ros.episodes.stops import Stops
from bid_ros.recording.events import FILE, RUN, append_event, read_run, told_head
from bid_ros.system.ended import read_end

_DIGITS: Final = 3
REHEARSAL: Final = "rehearsal"  # the hardware of a run in lockstep, which takes no time


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


@dataclass(frozen=True)
class EpisodeResult:
    """The result of one episode.

    Attributes:
        episode: index in the run, from 0.
        seed: seed of its scene.
        success: whether the task was done.
        outcome: ``success``, ``timeout``, ``not judged``, ``dropped``, ``stopped: <reason>`` or ``aborted: <reason>``.
        duration_s: s from start to end.
        label: kind of episode, for example ``clean``.
        outcome_class, outcome_code: as :class:`bid_ros.core.outcome.EpisodeOutcome`; empty: they follow from the text.
    """

    episode: int
    seed: int
    success: bool
    outcome: str
    duration_s: float
    label: str = ""
    outcome_class: str = ""
    outcome_code: str = ""

    def __post_init__(self) -> None:
        found = outcome_from_text(self.outcome)
        object.__setattr__(self, "outcome_class", self.outcome_class or found.kind)
        object.__setattr__(self, "outcome_code", self.outcome_code or found.code)

    def judged(self, outcome: EpisodeOutcome) -> "EpisodeResult":
        """Return the result of the same episode with this outcome."""
        said = (outcome.text, self.duration_s, self.label, outcome.kind, outcome.code)
        return EpisodeResult(self.episode, self.seed, outcome.success, *said)

    @property
    def broken_off(self) -> bool:
        """Whether a stop or the end of the run broke it off, so that nobody can say how it would have ended."""
        return outcome_from_text(self.outcome).kind != TASK

    @property
    def counts(self) -> bool:
        """Whether it counts in a success rate: whatever failed was no part of the robot, its links or the computer."""
        return self.outcome_class != INFRASTRUCTURE


@dataclass
class RunLog:
    """The record of a run in progress, and the content of ``run.json``.

    Attributes:
        task: name.
        decoder: name; of the decisions, once there are some.
        samples: N strong candidates per decision; the largest of the decisions, once there are some.
        moving: target speed in m/s, 0 = static.
        seed: seed of the first episode.
        hardware: ``twin`` or the name of the robot.
        bundle_sha256: hash of the policy bundle, empty without a policy.
        results: results of the episodes, in order.
        decision_ms: ms from the complete observation to the published chunk, for each decision.
        command_age_ms: age in ms of the observation behind the command, for each arm status while tracking.
        missed: number of decisions that were skipped because they would have started late.
        stops: what stopped, in episodes and in their preparation.
        pauses: of the arm, above half a second.
        ended: why the run ended before it was complete; None if it was complete, or still goes on.
        action_horizon, decision_rate_hz: actions executed a decision; decisions a second, 0 = the task's rate.
        system: folder of the system; empty for a rehearsal.
        events: number of lines of ``events.jsonl``, and the hash of the last one; None without that file.
        drawn: number of decisions with each N. It may shrink when a decision would take too long.
        shadow: report of the safety node in shadow mode, as :class:`bid_ros.safety.shadow.Shadow`; else None.
        deciding: decoder of the episode, once it has decided; not in ``run.json``.
    """

    task: str
    decoder: str
    samples: int
    moving: float
    seed: int
    hardware: str
    bundle_sha256: str = ""
    results: list[EpisodeResult] = field(default_factory=list)
    decision_ms: list[float] = field(default_factory=list)
    command_age_ms: list[float] = field(default_factory=list)
    missed: int = 0
    stops: Stops = field(default_factory=Stops)
    pauses: Pauses = field(default_factory=Pauses)
    ended: EpisodeOutcome | None = None
    action_horizon: int = 1
    decision_rate_hz: float = 0.0
    system: str = ""
    events: tuple[int, str] | None = None
    drawn: dict[int, int] = field(default_factory=dict)
    shadow: dict[str, Any] | None = None
    deciding: str = ""
    _missed_before: int | None = None
    _decoders: dict[str, None] = field(default_factory=dict)

    @property
    def successes(self) -> int:
        """Number of successful episodes, of those that count."""
        return sum(result.success for result in self.results if result.counts)

    @property
    def counted(self) -> int:
        """Number of episodes that count in the success rate."""
        return sum(result.counts for result in self.results)

    def outcomes(self) -> dict[str, dict[str, int]]:
        """Return how many episodes ended how: by class, then by code."""
        found: dict[str, dict[str, int]] = {kind: {} for kind in (TASK, SAFETY, INFRASTRUCTURE)}
        for result in self.results:
            codes = found.setdefault(result.outcome_class, {})
            codes[result.outcome_code] = codes.get(result.outcome_code, 0) + 1
        return found

    def correct(self, given: EpisodeOutcome) -> str:
        """Give the episode that ended last another outcome; return why it keeps its own, or an empty text."""
        last = self.results[-1]
        if last.broken_off:
            return f"the episode ended as '{last.outcome}', and stays so unless it is discarded"
        self.results[-1] = last.judged(given)
        return ""

    def start_episode(self) -> None:
        """Begin an episode. Missed decisions count from its first decision on."""
        self._missed_before, self.deciding = None, ""

    def add_decision(self, decision_ms: float, missed: int, decoder: str, samples: int) -> None:
        """Add one decision. ``missed`` is the counter of the policy node."""
        self._decoders[decoder], self.deciding = None, decoder
        self.drawn[samples] = self.drawn.get(samples, 0) + 1
        self.decoder, self.samples = " then ".join(self._decoders), max(self.drawn)
        self.decision_ms.append(decision_ms)
        if self._missed_before is not None:
            self.missed += missed - self._missed_before
        self._missed_before = missed

    def recent_ms(self, percentile: float) -> float:
        """Return a percentile of the last hundred decision latencies; 0 before the first."""
        return float(np.percentile(self.decision_ms[-100:], percentile)) if self.decision_ms else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``run.json``: times in ms, 95 % interval, null where nothing was measured."""
        age = percentiles(self.command_age_ms)
        low, high = wilson_interval(self.successes, self.counted)
        stops = self.stops.latched()
        given = "task system decoder samples action_horizon decision_rate_hz bundle_sha256 hardware moving seed"
        return {
            **{name: getattr(self, name) for name in given.split()},
            "episodes": len(self.results),
            "counted": self.counted,
            "successes": self.successes,
            "not_counted_successes": sum(result.success for result in self.results if not result.counts),
            "success_interval_95": [round(low, 4), round(high, 4)],
            "decisions": len(self.decision_ms),
            "missed": self.missed,
            "samples_drawn": {str(count): number for count, number in sorted(self.drawn.items())},
            "decision_ms": percentiles(self.decision_ms),
            "command_age_ms": {"p50": age["p50"], "p99": age["p99"]},
            "outcomes": self.outcomes(),
            "safety_stops": len(stops),
            "safety_stop": stops[-1].outcome.removeprefix("stopped: ") if stops else "",
            "stops": self.stops.to_list(),
            "pauses": self.pauses.to_list(),
            "ended": _named(self.ended),
            "events": told_head(self.events) if self.events else None,
            **({} if self.shadow is None else {"shadow": self.shadow}),
            "results": [{**asdict(item), "duration_s": round(item.duration_s, _DIGITS)} for item in self.results],
        }


def write_run(path: str | Path, log: RunLog) -> None:
    """Write ``run.json`` atomically: a reader sees the old file or the whole new one, even after a power cut."""
    with replacing(Path(path)) as part, part.open("w") as file:
        json.dump(log.to_dict(), file, indent=2, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def end_run(out: Path) -> None:
    """Complete ``run.json`` and the events of a run whose episode runner did not live to say who ended it.

    Nothing is changed if nobody ended the run, or if its ``run.json`` says it already. One that cannot be read stays.
    """
    ended = read_end(out)
    if ended is None:
        return
    run = read_run(out)
    if run is None or run.get("ended") is None:
        named = _named(outcome_of_end(ended)) or {}
        told = _end_events(out, named)
        if run is not None:
            replace_text(out / RUN, json.dumps({**run, "ended": named, **told}, indent=2) + "\n")


def _end_events(out: Path, named: Mapping[str, str]) -> dict[str, Any]:
    """Append the end of a run to its events; return what ``run.json`` says of them anew."""
    try:
        return {"events": told_head(append_event(out, "end", **named))} if (out / FILE).exists() else {}
    except OSError:  # a full disk loses the line and nothing else
        return {}


def _named(outcome: EpisodeOutcome | None) -> dict[str, str] | None:
    """Return an outcome under the names that results have."""
    if outcome is None:
        return None
    return {"outcome": outcome.text, "outcome_class": outcome.kind, "outcome_code": outcome.code}
