"""``bid policy compile``: make a bundle ready for a runtime, and compare it with the reference on the CPU."""

import argparse
import json
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np

from bid_ros.commands.tasks import task_of
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.observation import History, Observation
from bid_ros.core.tables import markdown_table
from bid_ros.core.task import Task
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.policy.agreement import compare_policies, decision_times, random_observations
from bid_ros.policy.bundle import bundled_task, load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.runtimes.registry import OPTIONS, build_runtime

REFERENCE = "onnx"  # float32 on the CPU
MOST_DECISIONS: Final = 10_000  # their observations are in memory at the same time


def add_compile(parts: Any) -> None:
    """Add ``bid policy compile``."""
    parser = parts.add_parser(
        "compile",
        help="make a bundle ready for a runtime such as TensorRT, and compare it with the CPU",
        description="Load a bundle with a runtime, for N = 1 and the given N, and build the engines that it needs. "
        "Then decide with it and with float32 on the CPU, on the same observations and noise, and report how far "
        "chunks and choices differ, and what decisions take.",
    )
    parser.add_argument("bundle", help="folder of a policy bundle")
    names = ", ".join(":".join((name, *(f"[{item}]" for item in options))) for name, options in OPTIONS.items())
    parser.add_argument("--runtime", default="auto", help=f"{names} (default auto)")
    parser.add_argument("--samples", type=int, default=16, help="N, strong samples, and as many weak ones (default 16)")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the bundle is of)")
    parser.add_argument(
        "--dataset", default="", help="data set whose observations are decided on (default: observations of noise)"
    )
    parser.add_argument("--decisions", type=int, default=100, help="decisions to compare and to time (default 100)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build, compare and report."""
    check_range("", "--samples", options.samples, 1, MOST_SAMPLES, BidError)
    check_range("", "--decisions", options.decisions, 1, MOST_DECISIONS, BidError)
    task = task_of(options.task, bundled_task(options.bundle), options.bundle)
    bundle = load_bundle(options.bundle, task)
    runtime = build_runtime(options.runtime, options.threads, build=True)
    observations = (
        recorded_observations(options.dataset, task, options.decisions, bundle.history(task))
        if options.dataset
        else random_observations(bundle, task, options.decisions)
    )
    print(f"loading {bundle.path} with runtime {runtime.name}; an engine takes minutes to build", file=sys.stderr)
    begin = perf_counter()
    policy = load_policy(bundle, task, runtime, options.threads)
    policy.warm_up(options.samples)
    ready_s = perf_counter() - begin
    reference = load_policy(bundle, task, REFERENCE, options.threads)
    reference.warm_up(options.samples)
    counts = sorted({1, options.samples})
    pairs = [(each, count) for each in (reference, policy) for count in counts]
    times = decision_times(bundle, task, pairs, observations, options.decisions)
    report: dict[str, Any] = {
        "bundle": str(bundle.path),
        "sha256": bundle.sha256,
        "runtime": policy.runtime,
        "reference": f"{REFERENCE}, float32, CPU",
        "observations": options.dataset or "noise",
        "ready_s": round(ready_s, 2),
        "rows": [],
    }
    for index, count in enumerate(counts):
        agreement = compare_policies(bundle, task, reference, policy, observations, count)
        row = {"samples": count, "weak": count * policy.has_weak, **vars(agreement)}
        for name, measured in (("reference", times[index]), ("runtime", times[len(counts) + index])):
            row |= {f"{name}_ms_p50": float(np.median(measured)), f"{name}_ms_p99": float(np.quantile(measured, 0.99))}
        report["rows"].append(row)
    print(json.dumps(report) if options.json else table(report))
    return 0


def table(report: dict[str, Any]) -> str:
    """Return the report as a table in Markdown."""
    about = "{bundle} with {runtime}, ready after {ready_s} s, observations: {observations}".format(**report)
    head = ("N", "largest difference", "choices agree", "decision p50, p99 ms", "on the CPU in float32")
    rows = []
    for row in report["rows"]:
        ours, theirs = ([f"{row[f'{name}_ms_{p}']:.2f}" for p in ("p50", "p99")] for name in ("runtime", "reference"))
        agree = f"{row['agree']:.1%} of {row['decisions']}"
        counts, difference = f"{row['samples']} + {row['weak']}", f"{row['difference']:.1e}"
        rows.append((counts, difference, agree, ", ".join(ours), ", ".join(theirs)))
    return f"{about}\n\n{markdown_table(head, rows)}"


def recorded_observations(path: str, task: Task, count: int, history: History) -> Sequence[Observation]:
    """Return the first observations of a data set, in order. Raises RecordingError if it cannot be read or is of
    another task."""
    from bid_ros.recording.dataset import Dataset

    dataset = Dataset.load(path)
    if dataset.task_signature != task.signature():
        raise BidError(f"data set {path} is of another task, or version of it, than '{task.name}'")
    starts = np.concatenate([[0], dataset.episode_ends[:-1]])
    found = []
    for row in range(min(count, len(dataset.stamps_ns))):
        first = int(starts[np.searchsorted(dataset.episode_ends, row, side="right")])
        back = np.rint(np.arange(history.steps - 1, -1, -1) * history.dt_ns / task.dt_ns).astype(int)
        rows = np.maximum(row - back, first)
        values = {name: items[rows] for name, items in dataset.observations.items()}
        found.append(Observation(int(dataset.stamps_ns[row]), values))
    return found
