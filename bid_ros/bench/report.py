"""The report of a bench as one HTML file without other files."""

import base64
import html
import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.bench import plots
from bid_ros.bench.cell import BenchCell
from bid_ros.bench.episode import EpisodePath
from bid_ros.bench.results import Key, load_trace
from bid_ros.bench.scene import BenchScene
from bid_ros.bench.summary import CellSummary, conditions, markdown
from bid_ros.core.errors import CameraError
from bid_ros.core.files import replace_text
from bid_ros.views.video import compose, write_gif

REPORT: Final = "report.html"
_SHOWN: Final = 3  # episodes with paths and a film
_PANELS: Final = 4  # decoders beside each other
_EVERY: Final = 3  # steps a frame, at least
_MOST_FRAMES: Final = 60  # of a film: drawing one without a GPU takes up to 0.1 s
_MOST_BYTES: Final = 700_000  # of a film
_CURVES: Final = (
    ("samples", "samples N"),
    ("noise", "noise strength"),
    ("drift", "drift of the block, px a step"),
    ("delay", "inference delay, steps"),
    ("ema_weight", "lambda, weight of the new prediction"),
    ("decay", "rho, decay of backward coherence"),
    ("mode_size", "K, mode size"),
    ("horizon", "action horizon"),
)
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1e25}"
    "table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}"
    "td,th{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}"
    "img{max-width:100%;height:auto}figure{display:inline-block;margin:.5rem}"
)
_NOTES: Final = (
    "Intervals: 95 %, bootstrap over episodes; differences "
    "paired over the same starts, samples and disturbances; full score: Wilson. Switches: consecutive decisions whose "
    "shared future lies further apart than a quarter of the training actions' spread. Overlap: their mean distance. "
    "Jerk: third derivative of the executed actions. Reaction: first command that differs by half of the block's "
    "jump from that of the same run without it. ms a decision: alone on one thread, as on a robot; a dash where it was "
    "not measured. Published, of Push-T: README of the code of Bidirectional Decoding (ICLR 2025)."
)


def write_report(
    folder: Path,
    summaries: Sequence[CellSummary],
    rows: Mapping[Key, Mapping[str, Any]],
    header: Mapping[str, Any],
    scene: BenchScene,
) -> Path:
    """Write ``report.html``: table, curves, paths and films of episodes in which decoders differ.

    Args:
        folder: of the results; their paths are read from it.
        summaries: of the cells.
        rows: of the cells.
        header: what the results were made with.
        scene: draws the films.
    """
    parts = [f"<h1>{html.escape(scene.name)}: decoders compared</h1>", _facts(header), _table(markdown(summaries))]
    parts.append(f"<p>Score: {html.escape(scene.scored)}. {_NOTES}</p>")
    parts.append(_figure(plots.score_bars(summaries), "score"))
    parts.append(_figure(plots.trade_off(summaries), "score and smoothness"))
    parts += [_figure(plots.score_curve(summaries, name, label), label) for name, label in _CURVES]
    parts.append(_figure(plots.latency_curve(summaries), "time of a decision"))
    parts += _episodes(folder, summaries, rows, scene)
    title = f"{scene.name} bench"
    page = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>"
        f"<style>{_STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )
    path = folder / REPORT
    replace_text(path, page)
    return path


def _facts(header: Mapping[str, Any]) -> str:
    rows = "".join(_row((name, str(value)), "td") for name, value in header.items())
    return f"<details><summary>made with</summary><table>{rows}</table></details>"


def _table(text: str) -> str:
    """Turn a markdown table into an HTML one."""
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    return f"<table>{_row(head, 'th')}{''.join(_row(line, 'td') for line in body)}</table>"


def _row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _figure(image: bytes | None, caption: str, kind: str = "png") -> str:
    if image is None:
        return ""
    data = base64.b64encode(image).decode()
    text = html.escape(caption)
    return f"<figure><img alt='{text}' src='data:image/{kind};base64,{data}'><figcaption>{text}</figcaption></figure>"


def _episodes(
    folder: Path, summaries: Sequence[CellSummary], rows: Mapping[Key, Mapping[str, Any]], scene: BenchScene
) -> list[str]:
    """Paths and films where the decoders differ most, under the conditions that most decoders were tried in."""
    groups: dict[Any, list[CellSummary]] = {}
    for item in summaries:
        groups.setdefault(conditions(item.cell), []).append(item)
    group = max(groups.values(), key=len, default=[])[:_PANELS]
    parts = []
    for seed, episode in differing_episodes([item.cell for item in group], rows, _SHOWN):
        found = [rows[item.cell.key, seed, episode] for item in group]
        traces = [load_trace(folder, row) for row in found]
        named = [
            (f"{item.label}: {row['score']:.2f}", trace) for item, row, trace in zip(group, found, traces, strict=True)
        ]
        title = f"seed {seed}, episode {episode}"
        parts.append(_figure(plots.paths(named, title), title))
        caption = f"{title}, left to right: {'; '.join(name for name, _ in named)}"
        try:
            parts.append(_figure(_film(traces, scene), caption, "gif"))
        except CameraError as error:  # the numbers are there, whether or not this computer draws
            parts.append(f"<p>No film: {html.escape(str(error))}</p>")
            logging.getLogger(__name__).warning("the report has no film: %s", error)
    return ["<h2>Where they differ most</h2>", *parts] if parts else []


def differing_episodes(
    cells: Sequence[BenchCell], rows: Mapping[Key, Mapping[str, Any]], count: int
) -> list[tuple[int, int]]:
    """Return (seed, episode) of those whose scores differ most between the cells, most first; all cells have them."""
    keys = [cell.key for cell in cells]
    scores: dict[tuple[int, int], list[float]] = {}
    for (key, seed, episode), row in rows.items():
        if key in keys:
            scores.setdefault((seed, episode), []).append(float(row["score"]))
    spread = {pair: max(found) - min(found) for pair, found in scores.items() if len(found) == len(keys) > 1}
    ordered = sorted(spread, key=lambda pair: (-spread[pair], pair))
    return [pair for pair in ordered if spread[pair] > 0][:count]


def _film(traces: Sequence[EpisodePath], scene: BenchScene) -> bytes:
    """Return a GIF of the traces side by side; one that has ended shows its last state."""
    env = scene.make(0.0)
    length = max(len(trace.agents) for trace in traces)
    every, frames = max(_EVERY, -(-length // _MOST_FRAMES)), []
    for step in range(0, length + every - 1, every):
        panels = []
        for trace in traces:
            index = min(step, len(trace.agents) - 1)
            state = env.set_state(trace.agents[index].astype(np.float64), trace.blocks[index].astype(np.float64))
            panels.append(scene.render(state))
        frames.append(compose(*panels))
    with tempfile.TemporaryDirectory() as folder:
        return write_gif(frames, Path(folder) / "film.gif", fps=10, max_bytes=_MOST_BYTES).read_bytes()
