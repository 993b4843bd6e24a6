"""From comma lists to the cells and units of a comparison."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bid_ros.bench.cell import BenchCell, make_cell
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task

MOST_EPISODES: Final = 100_000
"""Episodes of one seed; a scene's seed is ``MOST_EPISODES * seed + episode``, so seed 1 is what Push-T was published
with, and 0, where the demonstrations start, is left out."""
MOST_SEED: Final = 40_000
PRESETS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "published": {
        "decoder": ("vanilla", "warmstart", "ema", "bid", "bid+ema", "bid+warmstart"),
        "horizon": ("1",),
        "noise": (0.0, 1.0),
        "drift": (0.0,),
        "delay": (0,),
    }
}


@dataclass(frozen=True)
class Unit:
    """Episodes that one process runs in lockstep.

    Attributes:
        cell: their settings.
        seed: their seed.
        episodes: indices, ascending.
        steps: longest duration of an episode.
    """

    cell: BenchCell
    seed: int
    episodes: tuple[int, ...]
    steps: int


@dataclass(frozen=True)
class BenchPlan:
    """How many episodes every cell gets.

    Attributes:
        episodes: per seed.
        seeds: different whole numbers.
        steps: longest duration of an episode.
        batch: most episodes in lockstep.

    Raises:
        BidError: for a value outside its range.
    """

    episodes: int = 100
    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int = 300
    batch: int = 32

    def __post_init__(self) -> None:
        for name, most in (("episodes", MOST_EPISODES), ("steps", 100_000), ("batch", 1024)):
            check_range("", name, getattr(self, name), 1, most, BidError)
        different = set(self.seeds)
        if not different or len(different) < len(self.seeds) or not different <= set(range(1, MOST_SEED + 1)):
            raise BidError(f"seeds are {list(self.seeds)}; valid are different whole numbers from 1 to {MOST_SEED}")

    def units(self, cells: Sequence[BenchCell], done: set[tuple[str, int, int]]) -> list[Unit]:
        """Return what is left to run; ``done`` holds (cell key, seed, episode)."""
        units = []
        for seed, cell in itertools.product(self.seeds, cells):
            missing = [index for index in range(self.episodes) if (cell.key, seed, index) not in done]
            parts = -(-len(missing) // self.batch)
            # Equal parts: a small rest would leave most of a network call empty.
            units += [Unit(cell, seed, tuple(missing[part::parts]), self.steps) for part in range(parts)]
        return units


def scene_seed(seed: int, episode: int) -> int:
    """Seed of the scene of an episode: the same for every cell, so that cells are compared episode by episode."""
    return MOST_EPISODES * seed + episode


def build_cells(task: Task, lists: dict[str, Sequence[Any]]) -> list[BenchCell]:
    """Return the cells of every combination, each once.

    Args:
        task: its horizon resolves the horizon ``all``.
        lists: values per setting of :class:`bid_ros.bench.cell.BenchCell`; horizons are texts. A jump adds the
            cell without it, which reaction times are measured against.

    Raises:
        BidError: for an impossible value.
    """
    cells: dict[BenchCell, None] = {}
    for values in itertools.product(*lists.values()):
        settings = dict(zip(lists, values, strict=True))
        settings["horizon"] = _horizon(settings["horizon"], task)
        cell = make_cell(task, **settings)
        if cell.jump:
            cells[replace(cell, jump=0.0)] = None
        cells[cell] = None
    return list(cells)


def _horizon(text: str, task: Task) -> int:
    if text == "all":
        return task.horizon - (task.observation_steps - 1)
    try:
        return int(text)
    except ValueError as error:
        raise BidError(f"horizon is '{text}'; valid are whole numbers and 'all'") from error
