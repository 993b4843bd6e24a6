"""Compares the success of runs: confidence intervals, a Markdown table and a bar chart."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.errors import BidError
from bid_ros.core.outcome import INFRASTRUCTURE, outcome_from_text
from bid_ros.core.plot_style import GREY, INK, clean, decoder_colors, figure_of, lighter, save
from bid_ros.core.tables import markdown_table
from bid_ros.decoding import current_decoder

CONFIDENCE: Final = 0.95  # that an interval contains the true value


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """Return the Wilson score interval at 95 % (low, high) of a success rate.

    Unlike the normal interval it stays inside 0 to 1, and is not empty at 0 or at all successes.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927) 209-212.

    Args:
        successes: number of successes, 0 to ``episodes``.
        episodes: number of episodes; with 0 the interval is (0, 1).

    Raises:
        BidError: a count is not possible.
    """
    if not 0 <= successes <= episodes:
        raise BidError(f"{successes} successes of {episodes} episodes; valid is 0 to the number of episodes")
    if episodes == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    rate = successes / episodes
    shrink = 1 + z * z / episodes
    middle = (rate + z * z / (2 * episodes)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / episodes + z * z / (4 * episodes**2))
    # At the ends the interval is exactly 0 or 1, whatever the rounding.
    return (0.0 if successes == 0 else middle - half), (1.0 if successes == episodes else middle + half)


def paired_difference(
    first: ArrayLike, second: ArrayLike, seed: int = 0, resamples: int = 10_000
) -> tuple[float, float, float]:
    """Return mean(first - second) and its bootstrap percentile interval at 95 % (mean, low, high).

    Pairs (episodes of the same seed) are drawn with replacement. So the difficulty of an episode cancels.

    Source: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall 1993, section 13.3.

    Args:
        first, second: ``(K,)`` scores of the same episodes in the same order, for example 1 for success and 0 for not.
        seed: seed of the resampling.
        resamples: number of bootstrap samples.

    Raises:
        BidError: the scores are not two equally long, non-empty lists.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise BidError(f"paired scores have shapes {a.shape} and {b.shape}; valid is twice the same (K,) with K >= 1")
    difference = a - b
    drawn = np.random.default_rng(seed).integers(0, a.size, size=(resamples, a.size))
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(difference[drawn].mean(axis=1), [tail, 100 - tail])
    return float(difference.mean()), float(low), float(high)


REFERENCE: Final = "bid"


@dataclass
class SuccessCell:
    """Episodes of one decoder at one target speed.

    Attributes:
        decoder: name, with N and action horizon.
        moving: target speed, m/s.
        outcomes: success of each episode, by (repetition of the seed, seed).
        left_out: number of episodes that do not count, as robot, camera, link or computer failed or disturbed them, or
            somebody ended the run.
        left_out_successes: how many of these were successes.
    """

    decoder: str
    moving: float
    outcomes: dict[tuple[int, int], bool] = field(default_factory=dict)
    left_out: int = 0
    left_out_successes: int = 0

    @property
    def successes(self) -> int:
        """Number of successful episodes."""
        return sum(self.outcomes.values())

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson interval at 95 %."""
        return wilson_interval(self.successes, len(self.outcomes))

    def add(self, seed: int, success: bool) -> None:
        """Add an episode. A seed that ran before counts as another repetition."""
        repetition = 0
        while (repetition, seed) in self.outcomes:
            repetition += 1
        self.outcomes[repetition, seed] = success


def success_table(runs: Sequence[str | Path], plot: str | Path | None = None, moves: str = "target") -> str:
    """Return a Markdown table of success by decoder and target speed. With ``plot``, write a bar chart too.

    Runs of the same decoder, N, action horizon and speed are added up. Each rate has its 95 % Wilson interval. The last
    column compares with ``bid`` on the episodes that both have (same speed and seed).

    Args:
        runs: paths of ``run.json`` files.
        plot: PNG file to write.
        moves: what moves, as in :class:`bid_ros.tasks.base.TaskDescriptor`.

    Raises:
        BidError: a file is missing or is not a ``run.json``.
    """
    cells = collect(runs)
    if plot is not None:
        draw_chart(cells, plot, moves)
    return markdown(cells, moves)


def collect(runs: Sequence[str | Path]) -> list[SuccessCell]:
    """Read ``run.json`` files into one cell per decoder, N, action horizon and speed, sorted by decoder and speed.

    Raises:
        BidError: there are no files, one is missing or not a ``run.json``, or they are of different tasks.
    """
    if not runs:
        raise BidError("there is no run to compare; valid is one run.json or more")
    cells: dict[tuple[str, float], SuccessCell] = {}
    tasks: dict[str, str | Path] = {}
    for path in runs:
        try:
            run = json.loads(Path(path).read_text())
            name, moving = _name(run), float(run["moving"])
            tasks.setdefault(str(run["task"]), path)
            cell = cells.setdefault((name, moving), SuccessCell(name, moving))
            for result in run["results"]:
                if counts(result):
                    cell.add(int(result["seed"]), bool(result["success"]))
                else:
                    cell.left_out += 1
                    cell.left_out_successes += bool(result["success"])
        except OSError as error:
            raise BidError(f"run {path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BidError(f"run {path} is no run.json: {type(error).__name__} {error}") from error
    if len(tasks) > 1:
        said = " and ".join(f"'{task}' ({file})" for task, file in sorted(tasks.items()))
        raise BidError(f"the runs are of the tasks {said}; valid are runs of one task")
    return [cells[key] for key in sorted(cells)]


def counts(result: Mapping[str, Any]) -> bool:
    """Return whether a result in a ``run.json`` of any version counts in a success rate."""
    said = result.get("outcome_class") or outcome_from_text(str(result.get("outcome", ""))).kind
    return bool(said != INFRASTRUCTURE)


def markdown(cells: Sequence[SuccessCell], moves: str = "target") -> str:
    """Return a row per cell: decoder, target speed, successes, rate with interval, ``bid`` minus it, left out."""
    head = ("decoder", moves, "successes", "rate", "95 % interval", "bid minus it, same episodes", "not counted")
    rows = []
    for cell in cells:
        low, high = cell.interval
        rate = f"{cell.successes / len(cell.outcomes):.0%}" if cell.outcomes else "-"
        count = f"{cell.successes} of {len(cell.outcomes)}"
        interval = f"{low:.0%} to {high:.0%}"
        left = f"{cell.left_out}" + (f", {cell.left_out_successes} with success" if cell.left_out_successes else "")
        rows.append((cell.decoder, _speed(cell), count, rate, interval, _against(cell, cells), left))
    return markdown_table(head, rows)


def success_json(cells: Sequence[SuccessCell]) -> list[dict[str, Any]]:
    """Return what :func:`markdown` shows, as numbers: target speed in m/s, rate and its 95 % interval from 0 to 1."""
    return [
        {
            "decoder": cell.decoder,
            "moving": cell.moving,
            "episodes": len(cell.outcomes),
            "successes": cell.successes,
            "rate": cell.successes / len(cell.outcomes) if cell.outcomes else None,
            "interval": list(cell.interval),
            "left_out": cell.left_out,
        }
        for cell in cells
    ]


def draw_chart(cells: Sequence[SuccessCell], path: str | Path, moves: str = "target") -> None:
    """Write a PNG: a group of bars per decoder, a bar per speed that it ran at, with rates and 95 % intervals.

    A decoder has its colour of every plot; the faster the target, the lighter. What has no episode has no bar.
    """
    shown = [cell for cell in cells if cell.outcomes]
    decoders = list(dict.fromkeys(cell.decoder for cell in shown))
    speeds = sorted({cell.moving for cell in shown})
    light = {speed: 0.6 * index / max(1, len(speeds) - 1) for index, speed in enumerate(speeds)}
    figure = figure_of(max(5.0, 0.7 * len(shown) + 0.6 * len(decoders) + 1.5), 3.6)
    axes = figure.add_subplot()
    colors, at, ticks = decoder_colors(decoders), 0.0, []
    for decoder in decoders:
        own = sorted((cell for cell in shown if cell.decoder == decoder), key=lambda cell: cell.moving)
        ticks.append(at + (len(own) - 1) / 2)
        for cell in own:
            _draw_bar(axes, at, cell, lighter(colors[decoder], light[cell.moving]))
            at += 1
        at += 0.8
    axes.set_xticks(ticks, [name.replace(", ", "\n", 1) for name in decoders])
    axes.set(ylim=(0, 112), yticks=range(0, 101, 20), ylabel="success, %")
    clean(axes, "y")
    axes.tick_params(axis="x", length=0)
    keys = [axes.bar(0, 0, color=lighter(GREY, light[speed])).patches[0] for speed in speeds]
    names = [f"{moves} {_speed(SuccessCell('', speed))}" for speed in speeds]
    figure.legend(keys, names, loc="outside upper center", frameon=False, ncols=max(1, len(speeds)), labelcolor=INK)
    save(figure, path)


def _draw_bar(axes: Any, at: float, cell: SuccessCell, color: str) -> None:
    rate, ends = 100 * cell.successes / len(cell.outcomes), [100 * end for end in cell.interval]
    axes.bar(at, rate, 0.9, color=color)
    axes.errorbar(at, rate, [[rate - ends[0]], [ends[1] - rate]], fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    axes.annotate(f"{rate:.0f}", (at, ends[1]), (0, 3), textcoords="offset points", ha="center", fontsize=8, color=INK)


def _name(run: Mapping[str, Any]) -> str:
    horizon, rate_hz = int(run.get("action_horizon", 1)), run.get("decision_rate_hz", 0.0)
    rate = f", {rate_hz:g} Hz" if rate_hz else ""
    # Episodes of different hardware are never added up.
    hardware = run.get("hardware", "twin")
    where = "" if hardware == "twin" else f", {hardware}"
    decoder = " then ".join(map(current_decoder, run["decoder"].split(" then ")))
    return f"{decoder}, N = {int(run['samples'])}" + (f", h = {horizon}" if horizon > 1 else "") + rate + where


def _speed(cell: SuccessCell) -> str:
    return f"{cell.moving * 100:g} cm/s" if cell.moving else "static"


def _against(cell: SuccessCell, cells: Sequence[SuccessCell]) -> str:
    """Return the reference decoder minus a cell, in percentage points, if they share episodes."""
    others = [other for other in cells if other.moving == cell.moving and other.decoder.split(",")[0] == REFERENCE]
    if cell in others or len(others) != 1:
        return ""
    common = sorted(set(cell.outcomes) & set(others[0].outcomes))
    if not common:
        return ""
    bid, its = ([item.outcomes[key] for key in common] for item in (others[0], cell))
    mean, low, high = paired_difference(bid, its)
    return f"{100 * mean:+.0f} ({100 * low:+.0f} to {100 * high:+.0f}), {len(common)} episodes"
