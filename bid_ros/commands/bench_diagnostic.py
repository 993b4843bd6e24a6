"""``bid bench diagnostic``: the one-dimensional experiment on action horizons, beside the published table."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bid_ros.bench.diagnostic.experiment import HORIZONS, NOISES, READINGS, DiagnosticReading, reading_for, run
from bid_ros.bench.diagnostic.process import COUNTS, DISTANCES
from bid_ros.bench.diagnostic.report import draw_histograms, markdown, numbers
from bid_ros.commands.arguments import add_list
from bid_ros.core.errors import BidError
from bid_ros.core.files import check_folder

DESCRIPTION = """\
A demonstrator walks from s0 to s10 and pauses in s5; a forward move fails with the noise's probability. Learners copy
its chunks and look at the state every h steps. The table shows how far their idleness is from the demonstrator's: long
horizons win without noise, short ones with much noise. The paper does not give the values of --pause, --steps, --count
and --distance; --reading selects all four at once."""


def add_diagnostic_parser(subparsers: Any) -> None:
    """Add ``diagnostic`` to the subparsers of ``bid bench``."""
    parser = subparsers.add_parser(
        "diagnostic",
        help="one-dimensional experiment: which action horizon imitates best at which noise",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "--reading",
        choices=list(READINGS),
        default="fitted",
        help="values for what the paper leaves open (default fitted)",
    )
    add_list(parser, "--pause", int, metavar="N[,N...]", help="idle actions in s5, for each noise level")
    parser.add_argument("--steps", type=int, help="length of demonstrations and rollouts, 10 to 1000")
    parser.add_argument("--count", choices=list(COUNTS), help="idle actions or steps without progress, all or in s5")
    parser.add_argument("--distance", choices=list(DISTANCES), help="distance between two distributions")
    add_list(parser, "--noise", float, default=NOISES, metavar="P[,P...]", help="noise levels (default 0,0.2,0.4)")
    horizons = "action horizons to compare (default 1,2,3,5,7,10)"
    add_list(parser, "--action-horizon", int, default=HORIZONS, metavar="H[,H...]", help=horizons)
    parser.add_argument("--episodes", type=int, default=20_000, help="rollouts of a repeat (default 20000)")
    parser.add_argument("--repeats", type=int, default=5, help="independent repeats for the interval (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of data, weights and samples (default 0)")
    results = "folder for JSON, table and histograms (default data/diagnostic)"
    parser.add_argument("-o", "--out", default="data/diagnostic", help=results)
    parser.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    parser.set_defaults(run=run_diagnostic)


def run_diagnostic(options: argparse.Namespace) -> int:
    """Run the experiment, write ``diagnostic.json``, ``diagnostic.md`` and the histograms, print the table."""
    if options.seed < 0:
        raise BidError(f"--seed is {options.seed}; valid is a whole number of at least 0")
    out, reading = Path(options.out), _reading(options)
    check_folder(out)
    counts = options.episodes, options.repeats, options.seed
    result = run(reading, options.noise, options.action_horizon, *counts, progress=_progress)
    try:
        out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"reading": _name(reading, options.noise), **numbers(result)}, indent=1) + "\n"
        (out / "diagnostic.json").write_text(text)
        (out / "diagnostic.md").write_text(markdown(result))
        pictures = draw_histograms(result, out)
    except OSError as error:
        raise BidError(f"cannot write the results to {out}: {error.strerror or error}") from error
    print(text if options.json else markdown(result), end="")
    print(f"written: {out / 'diagnostic.json'}, diagnostic.md and {len(pictures)} histograms", file=sys.stderr)
    return 0


def _reading(options: argparse.Namespace) -> DiagnosticReading:
    named = {"pauses": options.pause, "steps": options.steps, "count": options.count, "distance": options.distance}
    given = {name: value for name, value in named.items() if value is not None}
    own = READINGS[options.reading] if options.pause else reading_for(options.reading, options.noise)
    return replace(own, **given)


def _name(reading: DiagnosticReading, noises: Sequence[float]) -> str:
    usual = set(noises) <= set(NOISES)
    return next((name for name in READINGS if usual and reading_for(name, noises) == reading), "custom")


def _progress(done: int, total: int) -> None:
    ending = "\n" if done == total else ""
    print(f"\r{done} of {total} cells", end=ending, file=sys.stderr, flush=True)
