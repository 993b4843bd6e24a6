"""How good the recommendation of `bid evaluate` is: its decoder and horizon beside the best ones, online.

    python scripts/results recommendation --pair NAME SCENE EVALUATION RUNS [--pair ...] [--held NAME ...]

SCENE is still or moving. EVALUATION is an evaluation.json of `bid evaluate`. RUNS is the folder of a bench, as
FOLDER,FOLDER:NOISE, or a folder below which run.json files of `bid rehearse` lie. --held names the pairs that the rule
was not made with. What is needed of them is kept in docs/results/data/recommendation.json. Without --pair the tables
are made again from that file; with --check nothing is written, and the exit status is 1 if the page differs.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.results import read_rows
from bid_ros.core.tables import markdown_table
from bid_ros.episodes.comparison import counts
from bid_ros.evaluation.recommendation import SCENES, recommend
from results.offline_prediction import DOCS, filled

DATA: Final = DOCS / "results" / "data" / "recommendation.json"
PAGE: Final = DOCS / "results" / "recommendation.md"
DECODERS: Final = ("vanilla", "ema", "bid")
ROWS: Final = ("one", "half")  # actions a decision: one, or half a prediction
HALVES: Final = 400
Scores = dict[str, list[float]]
"""Score of each episode by decoder and action horizon, as ``bid 1``; the same episodes in each list."""


def bench(folders: list[Path], noise: float) -> Scores:
    """Return the scores of the cells of a bench with usual settings."""
    found: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    for folder in folders:
        for row in read_rows(folder).values():
            cell = BenchCell(**row["cell"])
            if cell.noise == noise and cell.decoder in DECODERS:
                found[f"{cell.decoder} {cell.horizon}"][row["seed"], row["episode"]] = row["score"]
    return _paired(found)


def rehearsals(folder: Path) -> Scores:
    """Return 1 or 0 for each rehearsed episode."""
    found: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    for file in sorted(folder.glob("**/run.json")):
        run = json.loads(file.read_text())
        for item in filter(counts, run["results"]):
            found[f"{run['decoder']} {run['action_horizon']}"][item["seed"], 0] = float(item["success"])
    return _paired(found)


def _paired(found: dict[str, dict[tuple[int, int], float]]) -> Scores:
    same = sorted(set.intersection(*(set(scores) for scores in found.values())))
    return {name: [round(scores[key], 4) for key in same] for name, scores in sorted(found.items())}


def pair(name: str, scene: str, evaluation: str, runs: str) -> dict[str, Any]:
    """Return what is kept of one pair of policy and task."""
    judged = json.loads(Path(evaluation).read_text())
    folders, _, noise = runs.rpartition(":")
    scores = bench([Path(item) for item in folders.split(",")], float(noise)) if folders else rehearsals(Path(runs))
    kept = {key: judged["policy"][key][0] for key in ("modes", "disagreement")}
    shares = {decoder: found["measures"]["refused"] for decoder, found in judged["decoders"].items()}
    kept["refused"] = {decoder: share[0] for decoder, share in shares.items() if share is not None}
    return {
        "name": name,
        "scene": scene,
        **kept,
        "horizon": judged["horizon"],
        "dt_s": judged["dt_s"],
        "scores": scores,
    }


def picked(item: dict[str, Any]) -> str:
    """Return the decoder and horizon that the rule recommends for a pair, as the scores name them."""
    still, moving = recommend(item["modes"], item["horizon"], item["dt_s"], refused=item["refused"])
    chosen = still if item["scene"] == "still" else moving
    return f"{chosen.decoder} {chosen.action_horizon}"


def regret(scores: Scores, chosen: str) -> float:
    """Return how far a choice is below the best mean score: at least 0, and more than 0 by chance alone."""
    return max(map(np.mean, scores.values())) - float(np.mean(scores[chosen]))


def fair_regret(scores: Scores, chosen: str, seed: int = 0, halves: int = HALVES) -> float:
    """Return how far a choice is below what the best one of half the episodes scores in the other half.

    The best of six means is partly the luckiest one. Here luck has no part in what it is compared with.
    """
    values, names = np.array(list(scores.values())), list(scores)  # (6, E)
    rng, found = np.random.default_rng(seed), []
    for _ in range(halves):
        order = rng.permutation(values.shape[1])
        first, second = np.array_split(order, 2)
        best = values[:, first].mean(axis=1).argmax()
        found.append(values[best, second].mean() - values[names.index(chosen), second].mean())
    return float(np.mean(found))


def pairs_table(items: list[dict[str, Any]]) -> str:
    """Return a row for each pair: what its samples show, its scores, the choice and what it costs."""
    head = ["pair", "episodes", "modes", "disagree", *(f"{name}, {rows}" for rows in ROWS for name in DECODERS)]
    return markdown_table([*head, "regret", "fair regret"], [_pair_row(item) for item in items])


def _pair_row(item: dict[str, Any]) -> list[object]:
    scores, chosen = item["scores"], picked(item)
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    best = max(means.values())
    cells = [_marked(means[name], name == chosen, means[name] == best) for name in _ordered(scores)]
    name = f"{item['name']}{' (held back)' if item['held'] else ''}"
    found = [name, len(scores[chosen]), f"{item['modes']:.2f}", f"{100 * item['disagreement']:.0f} %", *cells]
    return [*found, f"{regret(scores, chosen):.3f}", f"{fair_regret(scores, chosen):+.3f}"]


def _marked(mean: float, chosen: bool, best: bool) -> str:
    text = f"{mean:.3f}".removeprefix("0")
    return f"**{text}**" if chosen else f"_{text}_" if best else text


def _ordered(scores: Scores) -> list[str]:
    """Return the names of the scores: one action a decision, then half a prediction; decoders in their order."""
    longest = max(int(name.split()[1]) for name in scores)
    return [f"{name} {rows}" for rows in (1, longest) for name in DECODERS]


def choices_table(items: list[dict[str, Any]]) -> str:
    """Return the mean regret of the rule and of each constant choice, over the pairs of a scene and over those held."""
    groups = {scene: [item for item in items if item["scene"] == scene] for scene in SCENES}
    groups |= {"all": items, "held back": [item for item in items if item["held"]]}
    lines = [["**the recommendation**", *(_mean_regret(group, picked) for group in groups.values())]]
    for index, name in enumerate(f"{name}, {rows}" for rows in ROWS for name in DECODERS):
        costs = (_mean_regret(group, partial(_at, index)) for group in groups.values())
        lines.append([f"always {name}", *costs])
    return markdown_table(["choice", *(f"{name}, {len(group)} pairs" for name, group in groups.items())], lines)


def _at(index: int, item: dict[str, Any]) -> str:
    return _ordered(item["scores"])[index]


def _mean_regret(items: list[dict[str, Any]], choice: Callable[[dict[str, Any]], str]) -> str:
    if not items:
        return "-"
    plain, fair = (np.mean([kind(item["scores"], choice(item)) for item in items]) for kind in (regret, fair_regret))
    return f"{plain:.3f} ({fair:+.3f})"


def main() -> int:
    """Collect, or read, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", nargs=4, action="append", metavar=("NAME", "SCENE", "EVALUATION", "RUNS"))
    parser.add_argument("--held", action="append", default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.pair:
        items = [pair(*item) | {"held": item[0] in options.held} for item in options.pair]
        DATA.write_text(json.dumps({"pairs": items}, separators=(",", ":")) + "\n")
    items = json.loads(DATA.read_text())["pairs"]
    text = PAGE.read_text()
    new = filled(text, {"pairs": pairs_table(items) + "\n", "choices": choices_table(items) + "\n"})
    if options.check:
        return int(new != text)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
