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

from bid_ros.bench.results import read_rows
from bid_ros.core.errors import BidError
from bid_ros.core.tables import markdown_table
from bid_ros.decoding import current_decoder
from bid_ros.episodes.comparison import counts
from bid_ros.evaluation.recommendation import SCENES, jitter_of, recommend, refusals
from results.offline_prediction import DEFAULTS, DOCS, filled

DATA: Final = DOCS / "results" / "data" / "recommendation.json"
PAGE: Final = DOCS / "results" / "recommendation.md"
DECODERS: Final = ("vanilla", "ema", "bid")
ROWS: Final = ("one", "half")  # actions a decision: one, or half a prediction
USUAL: Final = {
    **{name: value for name, value in DEFAULTS.items() if name != "horizon"},
    "variant": "corrected",
    "terms": "bid",
    "trim": "previous",
    "mode_size": 3,
    "decay": 0.5,
    "weak": True,
    "warm_start": "renoise",
    "ensemble": None,
    "agreement": None,
}
"""Settings of a cell that is read; it may leave them empty."""
HALVES: Final = 400
Scores = dict[str, list[float]]
"""Score of each episode by decoder and action horizon, as ``bid 1``; the same episodes in each list."""


def bench(folders: list[Path], noise: float) -> Scores:
    """Return the scores of the cells of a bench with usual settings."""
    found = _Found()
    for row in (row for folder in folders for row in read_rows(folder).values()):
        cell = row["cell"]
        usual = all(cell.get(name) in (None, value) for name, value in USUAL.items())
        if usual and cell["noise"] == noise:
            found.add(cell["decoder"], cell["horizon"], (row["seed"], row["episode"]), row["score"])
    return found.paired()


def rehearsals(folder: Path) -> Scores:
    """Return 1 or 0 for each rehearsed episode."""
    found = _Found()
    for file in sorted(folder.glob("**/run.json")):
        run = json.loads(file.read_text())
        for item in filter(counts, run["results"]):
            found.add(current_decoder(run["decoder"]), run["action_horizon"], (item["seed"], 0), float(item["success"]))
    return found.paired()


class _Found:
    """Scores of episodes as they are read."""

    def __init__(self) -> None:
        self._scores: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)

    def add(self, decoder: str, horizon: int, episode: tuple[int, int], score: float) -> None:
        """Add a score. Raises BidError if the episode has one already: two cells differ in what is not looked at."""
        if decoder not in DECODERS:
            return
        name = f"{decoder} {horizon}"
        if episode in self._scores[name]:
            raise BidError(f"'{name}' has two scores of seed {episode[0]}; valid are runs of one setting each")
        self._scores[name][episode] = score

    def paired(self) -> Scores:
        """Return the scores of the episodes that all have. Raises BidError unless there are six, two horizons."""
        horizons = sorted({int(name.split()[1]) for name in self._scores})
        if len(self._scores) != len(DECODERS) * len(ROWS) or len(horizons) != len(ROWS):
            valid = f"{DECODERS}, each with action horizon 1 and one other"
            raise BidError(f"the runs have {sorted(self._scores)}; valid are {valid}")
        same = sorted(set.intersection(*(set(scores) for scores in self._scores.values())))
        return {name: [round(scores[key], 4) for key in same] for name, scores in sorted(self._scores.items())}


def pair(name: str, scene: str, evaluation: str, runs: str) -> dict[str, Any]:
    """Return what is kept of one pair of policy and task."""
    if scene not in SCENES:
        raise BidError(f"scene is '{scene}'; valid are {', '.join(SCENES)}")
    judged = json.loads(Path(evaluation).read_text())
    if "robot" not in judged:
        raise BidError(f"{evaluation} is of an earlier version; run bid evaluate again")
    folders, _, noise = runs.rpartition(":")
    scores = bench([Path(item) for item in folders.split(",")], float(noise)) if folders else rehearsals(Path(runs))
    kept = {key: judged["policy"][key][0] for key in ("modes", "disagreement")}
    kept |= {"jitter": jitter_of(judged), "refused": refusals(judged)}
    about = {key: judged[key] for key in ("samples", "rows", "dt_s")}
    return {"name": name, "scene": scene, **kept, **about, "scores": scores}


def picked(item: dict[str, Any]) -> str:
    """Return the decoder and horizon that the rule recommends for a pair, as the scores name them."""
    known = (item[name] for name in ("modes", "jitter", "rows", "dt_s", "samples", "refused"))
    still, moving = recommend(*known)
    chosen = still if item["scene"] == "still" else moving
    return f"{chosen.decoder} {chosen.action_horizon}"


def regret(scores: Scores, chosen: str) -> float:
    """Return how far a choice is below the best mean score: too high, as the best of six is partly the luckiest."""
    return max(map(np.mean, scores.values())) - float(np.mean(scores[chosen]))


def lower_regret(scores: Scores, chosen: str, halves: int = HALVES) -> float:
    """Return how far a choice is below what the best one of half the episodes scores in the other half.

    Too low, as half of the episodes often call another one best. So this and :func:`regret` enclose the true one.
    """
    values, names = np.array(list(scores.values())), list(scores)  # (6, E)
    rng, found = np.random.default_rng(0), []
    for _ in range(halves):
        order = rng.permutation(values.shape[1])
        first, second = np.array_split(order, 2)
        best = values[:, first].mean(axis=1).argmax()
        found.append(values[best, second].mean() - values[names.index(chosen), second].mean())
    return float(np.mean(found))


def pairs_table(items: list[dict[str, Any]]) -> str:
    """Return a row for each pair: what its samples show, its scores, the choice and what it costs."""
    head = ["pair", "n", "modes", "jitter", *(f"{name} {rows}" for rows in ROWS for name in DECODERS)]
    return markdown_table([*head, "upper", "lower"], [_pair_row(item) for item in items])


def _pair_row(item: dict[str, Any]) -> list[object]:
    scores, chosen = item["scores"], picked(item)
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    best = max(means.values())
    cells = [_marked(means[name], name == chosen, means[name] == best) for name in _ordered(scores)]
    name = f"{item['name']}{' (held)' if item['held'] else ''}"
    found = [name, len(scores[chosen]), f"{item['modes']:.2f}", f"{item['jitter']:.1f}", *cells]
    return [*found, f"{regret(scores, chosen):.3f}", f"{lower_regret(scores, chosen):+.3f}"]


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
    plain, fair = (np.mean([kind(item["scores"], choice(item)) for item in items]) for kind in (regret, lower_regret))
    return f"{plain:.3f} ({fair:+.3f})"


def main() -> int:
    """Collect, or read, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", nargs=4, action="append", metavar=("NAME", "SCENE", "EVALUATION", "RUNS"))
    parser.add_argument("--held", action="append", default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.pair:
        try:
            items = [pair(*item) | {"held": item[0] in options.held} for item in options.pair]
        except (BidError, OSError) as error:
            parser.error(str(error))
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
