"""The results of an offline evaluation as a table, as JSON and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.episodes.confidence import paired_difference
from bid_ros.evaluation.evaluate import EpisodeMeasures
from bid_ros.evaluation.measures import MEASURES

RESAMPLES: Final = 4000


def summary(episodes: Sequence[EpisodeMeasures]) -> dict[str, Any]:
    """Return mean and interval of each measure by decoder, and the error at each step of the horizon."""
    decoders = list(episodes[0].means)
    return {
        "episodes": len(episodes),
        "decisions": sum(item.decisions for item in episodes),
        "decoders": {
            name: {
                "measures": {measure: _over(episodes, name, measure) for measure in MEASURES},
                "error_by_step": _steps(episodes, name),
            }
            for name in decoders
        },
    }


def markdown(found: dict[str, Any]) -> str:
    """Return the summary as a table, a decoder a row."""
    lines = [f"| decoder | {' | '.join(MEASURES)} |", f"|---|{'---|' * len(MEASURES)}"]
    for name, item in found["decoders"].items():
        cells = [_cell(item["measures"][measure]) for measure in MEASURES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    words = "\n".join(f"- {name}: {text}" for name, text in MEASURES.items())
    return f"{found['episodes']} episodes, {found['decisions']} decisions\n\n" + "\n".join(lines) + f"\n\n{words}"


def draw(found: dict[str, Any], path: Path) -> None:
    """Write a PNG: the error of each decoder over the horizon, beside that of the nearest sample."""
    from matplotlib.figure import Figure  # takes half a second to import

    figure = Figure(figsize=(6.4, 3.6), dpi=150, layout="constrained")
    axes = figure.subplots()
    for name, item in found["decoders"].items():
        axes.plot(item["error_by_step"], marker=".", label=name)
    axes.set_xlabel("step of the horizon")
    axes.set_ylabel("distance to the demonstration, spreads")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path)


def _over(episodes: Sequence[EpisodeMeasures], name: str, measure: str) -> list[float] | None:
    values = [item.means[name][measure] for item in episodes if measure in item.means[name]]
    return list(paired_difference(values, np.zeros(len(values)), resamples=RESAMPLES)) if values else None


def _steps(episodes: Sequence[EpisodeMeasures], name: str) -> list[float]:
    longest = max(len(item.errors[name]) for item in episodes)
    reached = [
        [item.errors[name][step] for item in episodes if len(item.errors[name]) > step] for step in range(longest)
    ]
    return [float(np.mean(values)) for values in reached]


def _cell(value: list[float] | None) -> str:
    return "-" if value is None else f"{value[0]:.3f} ({value[1]:.3f} to {value[2]:.3f})"
