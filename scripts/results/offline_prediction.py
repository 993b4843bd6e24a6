"""Hold the ranking of decoders on recorded episodes against their success, and put it into docs/results.

    python scripts/results offline-prediction --case NAME EVALUATION ONLINE [--case ...]

EVALUATION is an evaluation.json of `bid evaluate`. ONLINE is a folder below which run.json files say how the decoders
did when they acted, or summaries of `bid bench pusht` as FILE,FILE,...:NOISE. What is needed of them is kept in
docs/results/data/offline_prediction.json. Without --case the table and the picture are made again from that file; with
--check nothing is written, and the exit status is 1 if the page differs.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.core.plot_style import clean, figure_of, save
from bid_ros.decoding import current_decoder
from bid_ros.decoding.written import write_decoder
from bid_ros.episodes.comparison import counts, wilson_interval
from results.prediction import JUDGING, MeasureRanking, agreements

DOCS = Path(__file__).resolve().parents[2] / "docs"
DATA = DOCS / "results" / "data" / "offline_prediction.json"
PAGE = DOCS / "results" / "offline-prediction.md"
PICTURE = DOCS / "images" / "offline_prediction.png"
DEFAULTS = {"metric": "l2", "samples": 16, "ema_weight": 0.5, "horizon": 1, "jump": 0, "drift": 0, "delay": 0}
Online = dict[str, tuple[float, float, float]]


def runs(folder: Path) -> Online:
    """Return the success of each decoder over all runs below a folder."""
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    for file in sorted(folder.glob("**/run.json")):
        run = json.loads(file.read_text())
        for item in run["results"]:
            if counts(item):
                found[current_decoder(run["decoder"])][item["seed"]] = item["success"]
    return {
        name: (sum(items.values()) / len(items), *wilson_interval(sum(items.values()), len(items)))
        for name, items in found.items()
        if items
    }


def bench(files: list[Path], noise: float) -> Online:
    """Return the score of each decoder in summaries; of several cells the one of fewest episodes, the same starts."""
    found: dict[str, tuple[int, tuple[float, float, float]]] = {}
    for file in files:
        for item in json.loads(file.read_text())["cells"]:
            cell = item["cell"]
            usual = all(cell.get(name) in (None, value) for name, value in DEFAULTS.items())
            if cell["noise"] == noise and usual:
                name = _name(cell)
                if name not in found or item["episodes"] < found[name][0]:
                    found[name] = item["episodes"], tuple(item["score"])
    return {name: score for name, (_, score) in found.items()}


def _name(cell: dict[str, Any]) -> str:
    """Return the decoder of a cell of the bench, with the settings that are not the default."""
    usual = {"variant": "corrected", "terms": "bid", "trim": "previous"}
    said = {
        name: cell[name] for name in usual if cell["decoder"] == "bid" and cell.get(name) not in (None, usual[name])
    }
    return current_decoder(write_decoder(cell["decoder"], said))


def case(name: str, evaluation: str, online: str) -> dict[str, Any]:
    """Return what is kept of one comparison."""
    found = json.loads(Path(evaluation).read_text())
    files, _, noise = online.rpartition(":")
    success = bench([Path(file) for file in files.split(",")], float(noise)) if files else runs(Path(online))
    recorded = {current_decoder(name): name for name in found["decoders"]}
    success = {key: value for key, value in success.items() if key in recorded}
    episodes = [
        {
            decoder: {m: round(means[m], 5) for m in JUDGING if m in means}
            for decoder in success
            for means in [item["means"][recorded[decoder]]]
        }
        for item in found["by_episode"]
    ]
    rounded = {key: [round(number, 4) for number in value] for key, value in success.items()}
    return {
        "name": name,
        "decisions": found["decisions"],
        "online": rounded,
        "by_episode": [{"means": e} for e in episodes],
    }


def pairs(cases: list[dict[str, Any]], found: list[dict[str, MeasureRanking]]) -> str:
    """Return how many of the pairs that clearly differ each measure has in the right order."""
    return _table(cases, found, lambda m: f"{m.right}/{m.pairs}")


def lost(cases: list[dict[str, Any]], found: list[dict[str, MeasureRanking]]) -> str:
    """Return what the decoders that each measure calls best have less than the best one, points of 100."""
    return _table(cases, found, lambda m: f"{100 * m.lost:.0f}")


def _table(
    cases: list[dict[str, Any]], found: list[dict[str, MeasureRanking]], cell: Callable[[MeasureRanking], str]
) -> str:
    lines = [f"| | {' | '.join(JUDGING)} |", "|---" * (len(JUDGING) + 1) + "|"]
    for item, measures in zip(cases, found, strict=True):
        cells = [cell(measures[name]) if name in measures else "-" for name in JUDGING]
        lines.append(f"| {item['name']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(cases: list[dict[str, Any]], found: list[dict[str, MeasureRanking]], path: Path) -> None:
    """Write a PNG: the rank correlation of every measure in every comparison, with its interval."""
    figure = figure_of(10.5, 0.62 * len(cases) + 1.5)
    axes = figure.subplots()
    values = np.array([[measures[n].rho if n in measures else np.nan for n in JUDGING] for measures in found])
    shown = axes.imshow(values, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    for row, measures in enumerate(found):
        for column, name in enumerate(JUDGING):
            if name not in measures:
                continue
            m = measures[name]
            color = "white" if abs(m.rho) > 0.6 else "black"
            axes.text(column, row - 0.13, f"{m.rho:+.2f}", ha="center", va="center", color=color, fontsize=10)
            span = f"{m.low:+.1f} to {m.high:+.1f}"
            axes.text(column, row + 0.24, span, ha="center", va="center", color=color, fontsize=7)
    axes.set_xticks(range(len(JUDGING)), JUDGING)
    axes.set_yticks(range(len(cases)), [f"{item['name']} ({len(item['online'])})" for item in cases])
    axes.xaxis.tick_top()
    figure.colorbar(shown, ax=axes, label="rank correlation with success", shrink=0.9)
    clean(axes, "")
    save(figure, path)


def filled(text: str, parts: dict[str, str]) -> str:
    """Return a page with its tables between ``<!-- NAME -->`` and ``<!-- end -->``."""
    for name, part in parts.items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, tail = rest.partition("<!-- end -->")
        text = f"{head}<!-- {name} -->\n{part}<!-- end -->{tail}"
    return text


def main() -> int:
    """Collect, or read, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs=3, action="append", metavar=("NAME", "EVALUATION", "ONLINE"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.case:
        cases = [case(*item) for item in options.case]
        DATA.write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")
    cases = json.loads(DATA.read_text())["cases"]
    found = [agreements(item["by_episode"], {k: tuple(v) for k, v in item["online"].items()}) for item in cases]
    text = (
        PAGE.read_text() if PAGE.exists() else "".join(f"<!-- {name} -->\n<!-- end -->\n" for name in ("pairs", "lost"))
    )
    new = filled(text, {part.__name__: part(cases, found) for part in (pairs, lost)})
    if options.check:
        return int(new != text)
    PAGE.write_text(new)
    draw(cases, found, PICTURE)
    for item in cases:
        order = sorted(item["online"], key=lambda name: -item["online"][name][0])
        print(f"{item['name']}: " + ", ".join(f"{name} {item['online'][name][0]:.3f}" for name in order))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
