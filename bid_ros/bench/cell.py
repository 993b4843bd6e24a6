"""The cells of a comparison: a decoder with its settings under given disturbances; from comma lists to all of them."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.decoding.config import Metric, Terms, Trim, Variant
from bid_ros.decoding.decoder import DecodeRequest, Proposal
from bid_ros.decoding.decoder_config import MOST_SAMPLES, DecoderConfig, WarmStart
from bid_ros.decoding.lead import check_lead
from bid_ros.decoding.registry import build_decoder, decoder_names
from bid_ros.decoding.written import BID_SETTINGS, READ_BY, read_decoder

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

_BID: Final = ("samples", "weak", *BID_SETTINGS)
# Other parts, also those of other packages, may read all. The delay is a condition of every cell.
_OF_PART: Final[dict[str, tuple[str, ...]]] = {
    **{part: READ_BY[part] for part in ("vanilla", "ema", "warmstart", "rtc", "delay", "lead")},
    "bid": _BID,
    "keystone": ("samples", *READ_BY["keystone"]),
}
_SETTINGS: Final = (*_BID, "ema_weight", "warm_start", "ensemble")
NEWER: Final = ("ensemble", "agreement")
"""Settings that older results, and what was published, do not have."""
_SHORT: Final = {
    "horizon": "h",
    "samples": "N",
    "mode_size": "K",
    "decay": "rho",
    "ema_weight": "lambda",
    "warm_start": "start",
}


@dataclass(frozen=True)
class BenchCell:
    """The settings of a set of episodes. Build it with :func:`make_cell`.

    Attributes:
        decoder: name in the registry.
        horizon: actions executed per decision.
        noise: strength of the action noise.
        drift: px that the block moves along x and y a step.
        delay: steps between an observation and the first action decided on it.
        jump: px by which the block is displaced once; 0: never.
        samples, weak, metric, variant, trim, terms, mode_size, decay, ema_weight, warm_start, ensemble, agreement: as
            in :class:`bid_ros.decoding.DecoderConfig`, ``weak`` being whether the weak policy is used; None where the
            decoder does not read the setting.
    """

    decoder: str
    horizon: int
    noise: float = 0.0
    drift: float = 0.0
    delay: int = 0
    jump: float = 0.0
    samples: int | None = None
    weak: bool | None = None
    metric: Metric | None = None
    variant: Variant | None = None
    trim: Trim | None = None
    terms: Terms | None = None
    mode_size: int | None = None
    decay: float | None = None
    ema_weight: float | None = None
    warm_start: WarmStart | None = None
    ensemble: float | None = None
    agreement: float | None = None

    @property
    def key(self) -> str:
        """Short name. Equal settings have equal keys, also those of results that are older than a setting."""
        values = {name: value for name, value in asdict(self).items() if name not in NEWER or value is not None}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def needs_weak(self) -> bool:
        """Whether the decoder asks for samples of the weak policy."""
        return self._proposal().weak > 0

    @property
    def effort(self) -> float:
        """Rough cost of a step, for time estimates: a simulated step costs about as much as a denoised sample."""
        proposal = self._proposal()
        return 1.0 + (proposal.strong + proposal.weak) / self.horizon

    def config(self) -> DecoderConfig:
        """Return the settings for :func:`bid_ros.decoding.build_decoder`. Raises DecodingError for a bad one."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS if name != "weak"}
        given = {name: value for name, value in values.items() if value is not None}
        weak_samples = 0 if self.weak is False else None
        return DecoderConfig(action_horizon=self.horizon, weak_samples=weak_samples, delay=self.delay, **given)

    def _proposal(self) -> Proposal:
        request = DecodeRequest(0, 1, observation_steps=1, horizon=self.horizon, action_dim=1)
        return build_decoder(self.decoder, self.config()).propose(request)

    def label(self, shown: Iterable[str]) -> str:
        """Return the decoder's name with the settings in ``shown`` that it reads."""
        parts = [self.decoder]
        for name in shown:
            value = getattr(self, name)
            if name != "decoder" and value is not None:
                text = {"weak": {True: "weak", False: "no weak"}}.get(name, {}).get(value)
                parts.append(text or f"{_SHORT.get(name, name)} {_number(value)}")
        return ", ".join(parts)


def make_cell(task: Task, **settings: Any) -> BenchCell:
    """Return a cell without the settings that its decoder does not read. So equal cells compare equal.

    Args:
        task: says how long a prediction is.
        settings: fields of :class:`BenchCell`. What the text of ``decoder`` says, as in ``bid:variant=paper``, wins.

    Raises:
        BidError: the decoder is unknown or leads a position that ``task`` does not command, or a setting is outside its
            range.
    """
    name, said = read_decoder(settings.pop("decoder"))
    # Checked, but not kept: every decision of the benchmark is a whole number of steps after the one before.
    DecoderConfig(memory=said.pop("memory", DecoderConfig.memory))
    cell = BenchCell(decoder=name, **{**settings, **said})
    if cell.decoder not in decoder_names():
        raise BidError(f"decoder '{cell.decoder}' is unknown; valid are {', '.join(decoder_names())}")
    _check(cell, task)  # before settings are left out: nonsense is refused also where the decoder does not read it
    read = {name for part in cell.decoder.split("+") for name in _OF_PART.get(part, _SETTINGS)}
    if cell.samples == 1:
        read -= set(_BID) - {"samples"}
    if cell.variant != "paper":
        read -= {"trim"}
    if cell.ensemble is not None:
        read -= {"ema_weight"}
    unread: dict[str, Any] = {name: None for name in _SETTINGS if name not in read}
    cell = replace(cell, **unread)
    if "mode_size" in read:
        cell = replace(cell, mode_size=cell.config().bid(executed=1, observation_steps=1).mode_size)
    return cell if replace(cell, weak=True).needs_weak else replace(cell, weak=None)


def varying(cells: Iterable[BenchCell]) -> tuple[str, ...]:
    """Names of the settings in which cells of the same decoder differ, and in which all of them may."""
    rows = list(cells)
    names = [item.name for item in fields(BenchCell) if item.name != "decoder"]
    return tuple(name for name in names if _differ(name, rows))


def _differ(name: str, cells: Sequence[BenchCell]) -> bool:
    if len({getattr(cell, name) for cell in cells} - {None}) > 1:
        return True
    # A newer setting that a decoder reads and nobody gave is a value too: without it.
    given = {cell.decoder for cell in cells if getattr(cell, name) is not None}
    return name in NEWER and any(getattr(cell, name) is None for cell in cells if cell.decoder in given)


def _check(cell: BenchCell, task: Task) -> None:
    executable = task.horizon - (task.observation_steps - 1)
    check_lead(build_decoder(cell.decoder), task)
    for name in ("noise", "drift", "jump"):
        check_range("", name, getattr(cell, name), 0, 1000, BidError)
    if cell.samples is not None:
        check_range("", "samples", cell.samples, 1, MOST_SAMPLES, BidError)
    cell.config()
    if cell.delay < 0 or cell.horizon < 1 or cell.horizon + cell.delay > executable:
        raise BidError(
            f"horizon {cell.horizon} with delay {cell.delay} does not fit; valid is a horizon of at least 1, a delay "
            f"of at least 0, and together at most the {executable} executable rows of a prediction"
        )


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


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
