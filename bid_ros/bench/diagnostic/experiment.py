"""All cells of the experiment: noise levels times action horizons, repeated with independent random numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from bid_ros.bench.diagnostic.process import COUNTS, DISTANCES, Imitator, Shares, demonstrate, histogram
from bid_ros.core.errors import BidError
from bid_ros.core.settings import settings

NOISES: Final = (0.0, 0.2, 0.4)
HORIZONS: Final = (1, 2, 3, 5, 7, 10)


@settings
class DiagnosticReading:
    """One reading of the paper, which leaves pause, rollout length, what is counted and the distance open.

    Attributes:
        pauses: idle actions of the demonstrator in s5, one number for each noise level; a single one is for all.
        steps: length of demonstrations and rollouts.
        count: what is counted, a name in ``COUNTS``.
        distance: how two distributions are compared, a name in ``DISTANCES``.

    Raises:
        BidError: for a value outside its range.
    """

    pauses: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    steps: Annotated[int, Field(ge=10, le=1000)]
    count: Literal["idle", "idle-s5", "stay", "stay-s5"]
    distance: Literal["wasserstein", "total-variation", "summed"]

    def pause(self, index: int) -> int:
        """Pause at the noise level of that index; the last one given holds for all that follow."""
        return self.pauses[min(index, len(self.pauses) - 1)]


READINGS: Final[Mapping[str, DiagnosticReading]] = {
    # The text alone: always until the last five states were s5, which four idle actions make true; idle actions.
    "text": DiagnosticReading((4,), 60, "idle", "wasserstein"),
    # The figure's caption: a long, a middle and a short pause for low, middle and high noise; time spent in s5.
    "caption": DiagnosticReading((4, 2, 1), 60, "stay-s5", "wasserstein"),
    # The same with rollouts that end early, as far as the published best horizons need it.
    "fitted": DiagnosticReading((4, 2, 2), 11, "stay-s5", "wasserstein"),
}


def reading_for(name: str, noises: Sequence[float]) -> DiagnosticReading:
    """Return a reading of :data:`READINGS` with the pauses of these noise levels, those of :data:`NOISES`.

    Raises:
        BidError: it has a pause for each of these, and none for another one.
    """
    reading = READINGS[name]
    if len(reading.pauses) == 1:
        return reading
    pauses = dict(zip(NOISES, reading.pauses, strict=True))
    for noise in noises:
        if noise not in pauses:
            known = ", ".join(f"{item:g}" for item in NOISES)
            raise BidError(f"reading '{name}' has no pause for noise {noise:g}; valid are {known}, or --pause too")
    return replace(reading, pauses=tuple(pauses[noise] for noise in noises))


@dataclass(frozen=True, eq=False)
class DiagnosticCell:
    """One noise level and action horizon.

    Attributes:
        noise: probability that a forward move fails.
        horizon: h, actions a learner executes before it looks again.
        distance: mean over the repeats.
        low, high: 95 % interval of that mean (Student's t over the repeats).
        learner, demonstrator: shares ``(steps + 1,)`` of rollouts with 0, 1, ... of what is counted.
    """

    noise: float
    horizon: int
    distance: float
    low: float
    high: float
    learner: Shares
    demonstrator: Shares


@dataclass(frozen=True, eq=False)
class Result:
    """The whole experiment: the settings and one cell for each noise level and horizon, in that order."""

    reading: DiagnosticReading
    noises: tuple[float, ...]
    horizons: tuple[int, ...]
    episodes: int
    repeats: int
    seed: int
    cells: tuple[DiagnosticCell, ...]

    def cell(self, noise: float, horizon: int) -> DiagnosticCell:
        """Return the cell of a noise level and horizon of this result."""
        return next(cell for cell in self.cells if (cell.noise, cell.horizon) == (noise, horizon))

    def best(self, noise: float) -> int:
        """Return the horizon of smallest distance at a noise level; of equals the shortest."""
        row = [cell for cell in self.cells if cell.noise == noise]
        return min(row, key=lambda cell: cell.distance).horizon


def run(
    reading: DiagnosticReading,
    noises: Sequence[float] = NOISES,
    horizons: Sequence[int] = HORIZONS,
    episodes: int = 20_000,
    repeats: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Run every cell. The same seed gives the same numbers, and a cell's do not depend on which others are run.

    Args:
        reading: what the experiment is taken to be.
        noises: probabilities that a forward move fails, 0 up to but not 1.
        horizons: action horizons, at least 1.
        episodes: demonstrations of a repeat, and rollouts of each learner.
        repeats: independent repeats of everything, at least 2.
        seed: of all random numbers.
        progress: called with the number of cells done and of all.

    Raises:
        BidError: for a value outside its range.
    """
    _check(reading, noises, horizons, episodes, repeats)
    cells: list[DiagnosticCell] = []
    for index, noise in enumerate(noises):
        for horizon in horizons:
            cells.append(_cell(reading, reading.pause(index), noise, horizon, episodes, repeats, seed))
            progress(len(cells), len(noises) * len(horizons))
    return Result(reading, tuple(noises), tuple(horizons), episodes, repeats, seed, tuple(cells))


def _cell(
    reading: DiagnosticReading, pause: int, noise: float, horizon: int, episodes: int, repeats: int, seed: int
) -> DiagnosticCell:
    from scipy import stats  # takes half a second to import

    count, distance = COUNTS[reading.count], DISTANCES[reading.distance]
    pairs: list[tuple[Shares, Shares]] = []
    for repeat in range(repeats):
        rng = np.random.default_rng((seed, repeat, round(noise * 1e6), pause, horizon))
        shown = demonstrate(noise, pause, reading.steps, episodes, rng)
        rolled = Imitator(shown, horizon).roll_out(noise, reading.steps, episodes, rng)
        size = reading.steps + 1
        pairs.append((histogram(count(rolled), size), histogram(count(shown), size)))
    values = np.array([distance(learner, demonstrator) for learner, demonstrator in pairs])
    half = float(stats.t.ppf(0.975, repeats - 1) * values.std(ddof=1) / np.sqrt(repeats))
    mean = float(values.mean())
    learner, demonstrator = np.mean(pairs, axis=0)
    return DiagnosticCell(noise, horizon, mean, mean - half, mean + half, learner, demonstrator)


def _check(
    reading: DiagnosticReading, noises: Sequence[float], horizons: Sequence[int], episodes: int, repeats: int
) -> None:
    if not noises or not all(0 <= noise < 1 for noise in noises) or len(set(noises)) < len(noises):
        raise BidError(f"noise levels are {list(noises)}; valid are different numbers of at least 0 and below 1")
    if not horizons or min(horizons) < 1 or len(set(horizons)) < len(horizons):
        raise BidError(f"horizons are {list(horizons)}; valid are different whole numbers of at least 1")
    if len(reading.pauses) not in (1, len(noises)):
        raise BidError(
            f"there are {len(reading.pauses)} pauses; valid is 1 or one for each of {len(noises)} noise levels"
        )
    if episodes < 100 or repeats < 2:
        raise BidError(f"episodes is {episodes} and repeats {repeats}; valid is at least 100 and at least 2")
