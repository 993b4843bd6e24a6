"""The results of an offline evaluation: a table, JSON, a picture, and one HTML page that needs no other file."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

import numpy as np

from bid_ros.core.files import replacing
from bid_ros.core.plot_style import MARKS, clean, decoder_colors, figure_of, legend, save
from bid_ros.core.tables import markdown_table
from bid_ros.episodes.comparison import paired_difference
from bid_ros.evaluation.evaluate import EpisodeMeasures
from bid_ros.evaluation.measures import MEASURES
from bid_ros.evaluation.recommendation import described

RESAMPLES: Final = 4000


def summary(episodes: Sequence[EpisodeMeasures]) -> dict[str, Any]:
    """Return mean and 95 % interval of each measure by decoder, and the error at each step of the horizon."""
    decoders = list(episodes[0].means)
    pools, jerks = [item.policy for item in episodes], [item.jerk for item in episodes if item.jerk is not None]
    return {
        "episodes": len(episodes),
        "ended": {
            word: count
            for word, how in (("success", True), ("failure", False), ("unknown", None))
            if (count := sum(item.success is how for item in episodes))
        },
        "decisions": sum(item.decisions for item in episodes),
        "policy": {name: _over(pools, name) for name in dict.fromkeys(key for pool in pools for key in pool)},
        "demonstrated_jerk": float(np.mean(jerks)) if jerks else None,
        "decoders": {
            name: {
                "measures": {measure: _over([item.means[name] for item in episodes], measure) for measure in MEASURES},
                "error_by_step": _steps(episodes, name),
            }
            for name in decoders
        },
    }


def markdown(found: dict[str, Any]) -> str:
    """Return the summary as text: a table, a measure a row and a decoder a column, what the measures are, and what to
    begin with (:func:`described` says what else it takes).
    """
    decoders, alone = found["decoders"], found["episodes"] == 1
    rows = [(name, *(cell(item["measures"][name], alone) for item in decoders.values())) for name in MEASURES]
    table = markdown_table(("measure", *decoders), rows)
    words = "\n".join(f"- {name}: {text}" for name, text in MEASURES.items())
    ended = ", ".join(f"{count} {word}" for word, count in found["ended"].items())
    count = f"{found['episodes']} episodes ({ended}), {found['decisions']} decisions of each decoder"
    head = f"{count}; {'mean, without an interval' if alone else 'mean (95 % interval)'}"
    jerk = f"Jerk of what was demonstrated: {_plain(found['demonstrated_jerk'])}."
    return "\n\n".join(filter(None, (head, table, chance(found), jerk, described(found), words)))


def chance(found: dict[str, Any]) -> str:
    """Return a sentence for each decoder that chose among samples, no better than at random; empty: none did."""
    said, alone = [], found["episodes"] == 1
    for name, item in found["decoders"].items():
        gain, spread = (item["measures"][measure] for measure in ("gain", "spread"))
        if spread[0] > 0 and gain[1] <= 0:
            what = "worse than" if gain[2] < 0 and not alone else "no better than"
            its = cell(gain, alone)
            said.append(f"{name} chose {what} a random one of its samples: its gain is {its}, which is not above 0.")
    return "\n".join(said)


def draw(found: dict[str, Any], path: Path) -> None:
    """Write a PNG: the error of each decoder over the horizon, and its error beside how much it changes its mind."""
    figure = figure_of(9.6, 3.6)
    steps, both = figure.subplots(1, 2)
    colors = decoder_colors(list(found["decoders"]))
    for number, (name, item) in enumerate(found["decoders"].items()):
        color, mark = colors[name], MARKS[number % len(MARKS)]
        steps.plot(item["error_by_step"], marker=mark, markersize=4, label=name, color=color)
        error, coherence = (item["measures"][measure] for measure in ("error", "coherence"))
        if coherence is not None:
            ends = [[[value[0] - value[1]], [value[2] - value[0]]] for value in (coherence, error)]
            both.errorbar(coherence[0], error[0], ends[1], ends[0], marker=mark, capsize=3, color=color, label=name)
    steps.set(xlabel="step of the horizon", ylabel="distance to the demonstration, spreads")
    both.set(xlabel="distance to the decision before, spreads", ylabel="error, spreads")
    steps.set_ylim(bottom=0)
    clean(steps)
    clean(both)
    legend(figure, steps)
    save(figure, path)


def cell(value: list[float] | None, alone: bool = False) -> str:
    """Return a mean and its interval in words; ``alone``: of one episode, which gives no interval."""
    if value is None or alone:
        return _plain(None if value is None else value[0])
    return f"{value[0]:.3g} ({value[1]:.3g} to {value[2]:.3g})"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _over(episodes: Sequence[Mapping[str, float]], measure: str) -> list[float] | None:
    """Return mean and interval of a measure over the episodes that have it. None: none has."""
    values = [item[measure] for item in episodes if measure in item]
    return _interval(values) if values else None


def _interval(values: Sequence[float]) -> list[float]:
    """Return the mean of the episodes' values, and its 95 % interval."""
    return list(paired_difference(values, np.zeros(len(values)), resamples=RESAMPLES))


def _steps(episodes: Sequence[EpisodeMeasures], name: str) -> list[float]:
    longest = max(len(item.errors[name]) for item in episodes)
    reached = [
        [item.errors[name][step] for item in episodes if len(item.errors[name]) > step] for step in range(longest)
    ]
    return [float(np.mean(values)) for values in reached]


TEMPLATE: Final = Path(__file__).with_name("page.html")
EPISODES: Final = "$episodes"
INTERVALS: Final = "Means and 95 % intervals over episodes"


def write_page(found: dict[str, Any], pages: Sequence[Path], picture: Path, target: Path) -> None:
    """Write the page, one episode in memory at a time.

    Args:
        found: the summary, with ``task``, ``data`` and what :func:`described` takes.
        pages: a file for each episode to show, of :class:`bid_ros.evaluation.trace.Trace`.
        picture: PNG of the summary.
        target: file to write.
    """
    title = f"{found['task']}: {', '.join(found['decoders'])}"
    facts = {
        "episodes": found["episodes"],
        "decisions of each": found["decisions"],
        "decoders": len(found["decoders"]),
        "samples": found["samples"],
        "episodes shown below": len(pages),
    }
    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        data=escape(str(found["data"])),
        facts="".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in facts.items()),
        head="".join(f"<th>{escape(name)}</th>" for name in found["decoders"]),
        means="Means of one episode, without intervals" if found["episodes"] == 1 else INTERVALS,
        rows="\n".join(_row(name, text, found) for name, text in MEASURES.items()),
        chance=escape(chance(found)),
        jerk=_plain(found["demonstrated_jerk"]),
        begin=escape(described(found).replace("`", "")),
        picture=base64.b64encode(picture.read_bytes()).decode(),
        decoders=json.dumps(list(found["decoders"])).replace("<", "\\u003c"),
        colors=json.dumps(decoder_colors(list(found["decoders"]))).replace("<", "\\u003c"),
        episodes=EPISODES,
    )
    head, tail = filled.split(EPISODES)
    with replacing(target) as part, part.open("w", encoding="utf-8") as stream:
        stream.write(head)
        for number, page in enumerate(pages):
            stream.write((",\n" if number else "") + page.read_text(encoding="utf-8").replace("<", "\\u003c"))
        stream.write(tail)


def _row(measure: str, text: str, found: dict[str, Any]) -> str:
    values = [item["measures"][measure] for item in found["decoders"].values()]
    cells = "".join(f"<td>{_number(value, found['episodes'] == 1)}</td>" for value in values)
    return f"<tr><th>{measure}<small>{escape(text)}</small></th>{cells}</tr>"


def _number(value: list[float] | None, alone: bool) -> str:
    """Return the mean, and the interval below it."""
    return re.sub(r" \((.*)\)", r"<small>\1</small>", cell(value, alone))
