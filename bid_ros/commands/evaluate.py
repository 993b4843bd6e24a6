"""``bid evaluate``: what each decoder would have chosen in recorded episodes."""

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP, add_decoders
from bid_ros.commands.tasks import task_path
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.files import check_folder
from bid_ros.core.paths import share
from bid_ros.core.task import Task, load_task
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.recording.outcomes import OUTCOMES, SUCCESS
from bid_ros.system.folder import find_system, shipped_systems

if TYPE_CHECKING:
    from bid_ros.evaluation.run import EvaluationOutcome

DECODERS: Final = "vanilla,ema,bid"
SHOWN: Final = 12  # episodes on the page
SAID: Final = 5  # reasons for what is left out


def add_parser(verbs: Any) -> None:
    """Add ``evaluate``."""
    parser = verbs.add_parser(
        "evaluate",
        help="compare decoders on recorded episodes",
        description="Let decoders decide at every step of recorded episodes, from the same observations and with the "
        "same noise, and compare their choices with what was done. Nothing moves. It reads bags and data sets of "
        "every format that bid train reads, one episode at a time. Running a killed command again goes on where it "
        "stopped. Writes evaluation.json, evaluation.md, evaluation.png and evaluation.html to --out.",
    )
    parser.add_argument("system", help=f"{SYSTEM_HELP}; or a task file, or pusht")
    parser.add_argument("data", help="bags, a folder of runs, or a data set")
    add_decoders(
        parser,
        default=DECODERS,
        help=f"comma list, as in vanilla,bid:terms=backward (default {DECODERS})",
    )
    parser.add_argument("--samples", type=int, default=16, help="N, strong samples a decision (default 16)")
    parser.add_argument("--bundle", default="", help="folder of the policy bundle (default: system.yaml's)")
    parser.add_argument("--runtime", default="auto", help="network runtime (default auto)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default 0)")
    parser.add_argument(
        "--outcome",
        default=SUCCESS,
        metavar="WHICH",
        help=f"episodes of this outcome: {', '.join(OUTCOMES)} (default {SUCCESS}); never what a person discarded",
    )
    parser.add_argument("--episodes", type=int, default=0, metavar="N", help="only the first N episodes")
    parser.add_argument("--workers", type=int, default=1, help="processes, each with one thread (default 1)")
    parser.add_argument("--ray", default="", metavar="ADDRESS", help="judge on a Ray cluster; local starts one here")
    parser.add_argument("-o", "--out", default="out/evaluation", help="folder for the results (default out/evaluation)")
    parser.add_argument("--json", action="store_true", help="print evaluation.json on standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate. Return 0."""
    from bid_ros.commands.data import progress_bar
    from bid_ros.core.chunk import NANOSECONDS
    from bid_ros.core.worker_pool import WorkerPool
    from bid_ros.evaluation.evaluate import EvaluationSetup
    from bid_ros.evaluation.run import evaluate
    from bid_ros.formats import chosen, mapped, open_source
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.registry import drawn_samples, most_samples
    from bid_ros.recording.files import sentence

    decoders = _checked(options)
    check_folder(Path(options.out))
    task, folder, robot = _task_and_bundle(options)
    bundle = load_bundle(folder, task)
    setup = EvaluationSetup(task, folder, decoders, options.samples, options.seed, options.runtime, limited=robot)
    pool, out = WorkerPool(options.workers, options.ray), Path(options.out)
    recorded = chosen(open_source(options.data, task), options.outcome)
    source = mapped(recorded, task)
    begin = time.monotonic()
    with progress_bar(source.contents, options.episodes or None) as progress:
        first = options.episodes or None
        outcome = evaluate(setup, bundle.sha256, source, out / "parts", pool, SHOWN, first, progress)
    if not outcome.episodes:
        raise BidError(f"{options.data} holds no episode of outcome {options.outcome}; valid is data with one or more")
    samples = drawn_samples(bundle, options.samples)
    about = {"task": task.name, "bundle_sha256": bundle.sha256, "samples": samples, "seed": options.seed}
    about |= {
        "most_samples": most_samples(bundle),
        "rows": task.chunk_rows,
        "dt_s": task.dt_ns / NANOSECONDS,
        "robot": robot,
    }
    about |= {"outcome": options.outcome, "left_out": list(getattr(recorded, "reasons", ()))}
    about |= {"read_otherwise": list(source.contents.notes)}
    invented = list(getattr(recorded, "invented", ()))
    found = _written(outcome, out, about | {"data": options.data, "invented": invented})
    print((out / f"evaluation.{'json' if options.json else 'md'}").read_text(), end="\n" if options.json else "")
    for line in (*found["read_otherwise"], *_left_out(found["left_out"])):
        print(line, file=sys.stderr)
    if invented:
        print(f"{options.data}: {sentence(invented)}", file=sys.stderr)
    print(_throughput(outcome, len(decoders), pool.workers, time.monotonic() - begin), file=sys.stderr)
    print(f"wrote {out}/evaluation.html, .json, .md and .png", file=sys.stderr)
    return 0


def _checked(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the decoders. Raises BidError for a value outside its range."""
    decoders = tuple(dict.fromkeys(filter(None, options.decoder)))
    if not decoders:
        raise BidError("--decoder names none; valid is a comma list of one or more")
    check_range("", "--samples", options.samples, 1, MOST_SAMPLES, BidError)
    for name in ("episodes", "seed"):
        if (value := getattr(options, name)) < 0:
            raise BidError(f"--{name} is {value}; valid is 0 or more")
    return decoders


def _task_and_bundle(options: argparse.Namespace) -> tuple[Task, Path, bool]:
    """Return the task of a policy, its bundle, and whether it is of a system, not of a task that has none: Push-T."""
    named = Path(options.system)
    if options.system in shipped_systems() or named.is_dir():
        system = find_system(options.system)
        return system.policy_task, Path(system.bundle(options.bundle)), True
    try:
        task = load_task(task_path(options.system))
    except BidError as error:
        systems = ", ".join(shipped_systems())
        raise BidError(f"{error}; valid are a system's folder, {systems}, a task file, or pusht") from error
    return task, Path(options.bundle) if options.bundle else share("models", task.name), False


def _written(outcome: "EvaluationOutcome", out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Write table, JSON, picture and page; return the summary."""
    from bid_ros.evaluation.report import draw, markdown, summary, write_page
    from bid_ros.recording.files import sentence

    found = summary(outcome.episodes) | about
    out.mkdir(parents=True, exist_ok=True)
    every = [vars(item) for item in outcome.episodes]
    (out / "evaluation.json").write_text(json.dumps({**found, "by_episode": every}))
    said = f"\nThe bags were {sentence(found['invented'])}.\n" if found["invented"] else ""
    (out / "evaluation.md").write_text(f"{markdown(found)}\n{said}")
    draw(found, out / "evaluation.png")
    write_page(found, outcome.pages, out / "evaluation.png", out / "evaluation.html")
    return found


def _left_out(reasons: Sequence[str]) -> list[str]:
    """Return what was not taken of the data, and why: a line each, the first ones of many."""
    more = [f"... and {len(reasons) - SAID} more, which evaluation.json names"] if len(reasons) > SAID else []
    return [*reasons[:SAID], *more]


def _throughput(outcome: "EvaluationOutcome", decoders: int, workers: int, took_s: float) -> str:
    """Return in a sentence how fast it was, and how much memory this process and the largest other one took."""
    here, others = (
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    whole = sum(item.decisions for item in outcome.episodes) * decoders
    again = f", {outcome.resumed} episodes from an earlier run" if outcome.resumed else ""
    rate = "" if outcome.resumed else f", {whole / took_s:.0f} decisions/s"
    more = f", {others:.0f} MB in the largest worker" if workers > 1 else ""
    done = f"{len(outcome.episodes)} episodes x {decoders} decoders in {took_s:.1f} s{rate}{again}"
    return f"{done}; peak memory {here:.0f} MB{more}"
