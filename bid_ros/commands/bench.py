"""``bid bench``: compare decoders in simulation."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.task import load_task
from bid_ros.decoding import METRICS, TERMS, TRIMS, VARIANTS, decoder_names

_WARM_STARTS: Final = ("renoise", "clean")
_TASK: Final = "pusht"
_OTHERS: Final = {"diagnostic": "bench_diagnostic", "data": "bench_data"}
Value = TypeVar("Value")


def add_parser(verbs: Any) -> None:
    """Add ``bench`` and its parts."""
    bench = verbs.add_parser(
        "bench",
        help="measure decoders in simulation",
        description="Measure what a decoder does to success, smoothness and latency.",
    )
    parts = bench.add_subparsers(title="benches", dest="bench", required=True, metavar="BENCH")
    _add_pusht(parts)
    for part, module in _OTHERS.items():
        name = f"bid_ros.commands.{module}"
        if importlib.util.find_spec(name):
            getattr(importlib.import_module(name), f"add_{part}_parser")(parts)


def _add_pusht(parts: Any) -> None:
    pusht = parts.add_parser(
        "pusht",
        help="closed- and open-loop rollouts of Push-T",
        description="Roll out every combination of the comma lists on the same starts. The same seeds give the same "
        "numbers, whatever --batch and --workers are. Running the command again goes on where it stopped.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    grid = pusht.add_argument_group("what is compared (comma lists)")
    grid.add_argument("--preset", choices=("published",), help="the published comparison; sets the first five lists")
    grid.add_argument("--decoder", default="vanilla,bid", help=f"of {', '.join(decoder_names())}")
    grid.add_argument("--horizon", default="1", help="actions executed per decision; all = open loop")
    grid.add_argument("--noise", default="0", help="strength of the action noise")
    grid.add_argument("--drift", default="0", help="px that the block moves along x and y a step")
    grid.add_argument("--delay", default="0", help="steps from an observation to the first action decided on it")
    grid.add_argument("--jump", default="0", help="px by which the block is displaced once, to time reactions")
    grid.add_argument("--samples", default="16", help="N")
    grid.add_argument("--mode-size", default="auto", help="K; auto = min(3, N // 2)")
    grid.add_argument("--decay", default="0.5", help="rho")
    grid.add_argument("--ema-weight", default="0.5", help="lambda, weight of the new prediction")
    grid.add_argument("--metric", default="l2", help=f"of {', '.join(METRICS)}")
    grid.add_argument("--variant", default="corrected", help=f"of {', '.join(VARIANTS)}")
    grid.add_argument("--trim", default="previous", help=f"of {', '.join(TRIMS)}; only variant paper has it")
    grid.add_argument("--terms", default="bid", help=f"of {', '.join(TERMS)}")
    grid.add_argument("--warm-start", default="renoise", help=f"of {', '.join(_WARM_STARTS)}")
    grid.add_argument("--no-weak", action="store_true", help="do without the weak policy")
    plan = pusht.add_argument_group("how often")
    plan.add_argument("--episodes", type=int, default=100, help="of each cell and seed")
    plan.add_argument("--seeds", default="1,2,3", help="comma list; seed 1 has the published starts")
    plan.add_argument("--steps", type=int, default=300, help="longest episode; full score ends it early")
    run = pusht.add_argument_group("how it is run")
    run.add_argument("--bundle", default="models/pusht", help="folder of the policy")
    run.add_argument("--runtime", default="auto", help="auto, openvino or onnx")
    run.add_argument("--batch", type=int, default=32, help="most environments in one network call")
    run.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, each with one thread")
    run.add_argument("--ray", default="", metavar="ADDRESS", help="run on a Ray cluster instead; local starts one")
    run.add_argument("--out", default="runs/pusht", help="folder of results, summary.json and report.html")
    run.add_argument("--json", action="store_true", help="print summary.json on standard output")
    pusht.set_defaults(run=run_pusht)


def run_pusht(options: argparse.Namespace) -> int:
    """Run the bench."""
    from bid_ros.bench import Crew, Plan, Setup, build_cells, markdown, pusht_scene, run_bench
    from bid_ros.bench.report import REPORT
    from bid_ros.bench.sweep import SUMMARY

    if options.workers < 1:
        raise BidError(f"workers is {options.workers}; valid is 1 or more")
    task = load_task(share("config", f"{_TASK}.yaml"))
    cells = build_cells(task, grid_lists(options))
    plan = Plan(options.episodes, tuple(_list("seeds", options.seeds, int)), options.steps, options.batch)
    setup = Setup(_bundle(options.bundle), task, pusht_scene(), options.runtime)
    out = Path(options.out)
    summaries = run_bench(cells, plan, setup, out, Crew(options.workers, options.ray))
    print(json.dumps(json.loads((out / SUMMARY).read_text())) if options.json else markdown(summaries))
    print(f"report: {out / REPORT}", file=sys.stderr)
    return 0


def grid_lists(options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of every setting. Raises BidError for a value that is not valid."""
    from bid_ros.bench import PRESETS

    lists: dict[str, Any] = {"decoder": _list("decoder", options.decoder, str)}
    lists["horizon"] = _list("horizon", options.horizon, str)
    for name in ("noise", "drift", "jump"):
        lists[name] = _list(name, getattr(options, name), float)
    for name in ("delay", "samples"):
        lists[name] = _list(name, getattr(options, name), int)
    lists["mode_size"] = _list("mode-size", options.mode_size, lambda text: None if text == "auto" else int(text))
    for name in ("decay", "ema_weight"):
        lists[name] = _list(name.replace("_", "-"), getattr(options, name), float)
    for name in ("metric", "variant", "trim", "terms", "warm_start"):
        lists[name] = _list(name.replace("_", "-"), getattr(options, name), str)
    lists["weak"] = [not options.no_weak]
    return {**lists, **PRESETS.get(options.preset, {})}


def _list(name: str, text: str, kind: Callable[[str], Value]) -> list[Value]:
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError as error:
        raise BidError(f"--{name} is '{text}'; valid is a comma list of numbers") from error


def _bundle(text: str) -> Path:
    """Return the path of a bundle: the folder as given, or the shipped one."""
    path = Path(text)
    # Absolute, because the processes of a cluster start in another folder.
    return path.absolute() if path.exists() or path.is_absolute() else share(*path.parts)
