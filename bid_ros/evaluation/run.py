"""A whole evaluation: what is left to judge, who judges it, what is kept of it."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bid_ros.core.files import replace_text
from bid_ros.core.worker_pool import Report, WorkerPool
from bid_ros.evaluation.evaluate import EpisodeMeasures, EvaluationSetup, episode_key
from bid_ros.evaluation.trace import Trace
from bid_ros.formats.base import DataEpisode, Source
from bid_ros.formats.convert import check_episode

VERSION = 7  # of the measures and of how decoders choose: parts of another are not used


@dataclass(frozen=True, eq=False)
class Job:
    """An episode to judge.

    Attributes:
        number: of the episode in its data set.
        key: hash of its content, and of the text that a policy may be asked with.
        episode: the episode.
        shown: whether the page shows it.
    """

    number: int
    key: str
    episode: DataEpisode
    shown: bool


@dataclass(frozen=True)
class Done:
    """What came of a job.

    Attributes:
        number, key: of the job.
        measures: of the episode.
        page: of :class:`Trace`, JSON; None if the page does not show it.
    """

    number: int
    key: str
    measures: EpisodeMeasures
    page: str | None


@dataclass
class EvaluationOutcome:
    """What came of an evaluation.

    Attributes:
        episodes: measures of each, in the order of the data set.
        pages: files with what the page shows, in this order.
        resumed: number of episodes that an earlier run had judged.
    """

    episodes: list[EpisodeMeasures] = field(default_factory=list)
    pages: list[Path] = field(default_factory=list)
    resumed: int = 0


def evaluate(
    setup: EvaluationSetup,
    bundle_sha256: str,
    source: Source,
    folder: Path,
    pool: WorkerPool | None = None,
    shown: int = 12,
    most: int | None = None,
    progress: Callable[[int, int], None] = lambda episodes, rows: None,
) -> EvaluationOutcome:
    """Judge every episode of a data set that the folder lacks. As many episodes as workers, plus two, are in memory.

    Args:
        setup: what is evaluated.
        bundle_sha256: hash of its bundle.
        source: data set of the task, from :func:`bid_ros.formats.mapped`.
        folder: keeps what was measured of each episode, so that the same call goes on where another was stopped.
        pool: who judges; None: this process.
        shown: number of episodes, the first ones, whose pictures and chunks are kept for the page.
        most: number of episodes, the first ones; None: all.
        progress: called with the numbers of episodes and decisions done.

    Raises:
        BidError: the data hold numbers that are none, or the data, the policy or a worker fails.
    """
    parts = _Parts(folder, setup, bundle_sha256)
    outcome, done, rows = EvaluationOutcome(), dict[int, EpisodeMeasures](), 0
    told = "text" in source.contents.extras

    def add(item: Done) -> None:
        nonlocal rows
        done[item.number] = item.measures
        rows += item.measures.decisions
        progress(len(done), rows)

    def jobs() -> Iterator[Job]:
        for number, found in enumerate(islice(source.episodes(), most)):
            check_episode(source.contents, found, number)
            episode = found if told else replace(found, text="", texts=())  # the task's own words were asked by nobody
            job = Job(number, _part_key(episode), episode, number < shown)
            if job.shown:
                outcome.pages.append(parts.page(job.key))
            part = parts.find(job)
            if part is None:
                yield job
            else:
                outcome.resumed += 1
                add(part)

    for item in (pool or WorkerPool()).run(jobs(), partial(_Worker, setup)):
        parts.keep(item)
        add(item)
    outcome.episodes = [done[number] for number in sorted(done)]
    return outcome


def _part_key(episode: DataEpisode) -> str:
    texts = repr((episode.text, episode.texts)) if episode.text or episode.texts else ""
    return episode_key(episode) + (hashlib.sha256(texts.encode()).hexdigest()[:8] if texts else "")


class _Worker:
    """Judges episodes; it loads the policy once."""

    def __init__(self, setup: EvaluationSetup, _: Report) -> None:
        self._task, self._evaluation = setup.task, setup.build()

    def __call__(self, job: Job) -> Done:
        trace = Trace(job.episode, self._task) if job.shown else None
        measures = self._evaluation.judge(job.episode, trace)
        page = None if trace is None else json.dumps(trace.page(), separators=(",", ":"))
        return Done(job.number, job.key, measures, page)


class _Parts:
    """The results of single episodes on the disk. Those of other settings lie in other folders."""

    def __init__(self, folder: Path, setup: EvaluationSetup, bundle_sha256: str) -> None:
        settings = [VERSION, setup.task.signature(), bundle_sha256, setup.decoders, setup.samples, setup.seed]
        name = hashlib.sha256(json.dumps([*settings, setup.runtime, setup.limited]).encode()).hexdigest()[:12]
        self._folder = folder / name

    def page(self, key: str) -> Path:
        return self._folder / f"{key}.page.json"

    def find(self, job: Job) -> Done | None:
        if job.shown and not self.page(job.key).exists():
            return None
        try:
            content: dict[str, Any] = json.loads((self._folder / f"{job.key}.json").read_text())
            measures = EpisodeMeasures(**content)
        except (OSError, ValueError, TypeError):
            return None
        # How it ended may be read from elsewhere now, and the page says it too.
        return Done(job.number, job.key, measures, None) if measures.success is job.episode.success else None

    def keep(self, done: Done) -> None:
        """Write the page's part, then the measures: they mark the episode as done."""
        if done.page is not None:
            replace_text(self.page(done.key), done.page)
        replace_text(self._folder / f"{done.key}.json", json.dumps(asdict(done.measures)))
