"""The whole bench: what is left to run, who runs it, what it came to."""

import json
import os
import platform
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.bench.cell import BenchCell, BenchPlan, Unit
from bid_ros.bench.episode import JUMP_STEPS, START_NS
from bid_ros.bench.report import write_report
from bid_ros.bench.results import HEADER, SIMULATOR, Key, Results, write_parquet
from bid_ros.bench.rollout import UnitRunner, load_policy
from bid_ros.bench.scene import PUSHT, BenchScene, BenchSetup
from bid_ros.bench.summary import CellSummary, summarise
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.core.observation import Observation
from bid_ros.core.worker_pool import WorkerPool
from bid_ros.decoding import build_decoder
from bid_ros.policy.base import Policy
from bid_ros.policy.bundle import DIFFUSION, bundle_sha256
from bid_ros.policy.decide import DecisionMaker, check_decoder
from bid_ros.policy.registry import most_samples
from bid_ros.recording.provenance import installed_version, processor

SUMMARY: Final = "summary.json"
FORMAT: Final = 1
_DECISIONS: Final = 12  # over which the median time is taken
_LINE: Final = "{percentage:3.0f}%{postfix}, {elapsed} spent, {remaining} left"
_PACKAGES: Final = ("numpy", "onnxruntime", "openvino")


@dataclass(frozen=True, eq=False)
class BenchOutcome:
    """What a bench came to.

    Attributes:
        summaries: of each cell.
        rows: of the episodes of these cells.
        header: what they were made with.
    """

    summaries: list[CellSummary]
    rows: Mapping[Key, Mapping[str, Any]]
    header: Mapping[str, Any]


def run_bench(
    cells: Sequence[BenchCell],
    plan: BenchPlan,
    setup: BenchSetup,
    folder: Path,
    pool: WorkerPool | None = None,
    log: TextIO | None = None,
) -> BenchOutcome:
    """Run what the folder lacks, and summarise all of it. Only rows and paths are written: see :func:`write_outcome`.

    Args:
        cells: to compare.
        plan: episodes of each.
        setup: policy, task and scene.
        folder: of the results; episodes already in it are not run again.
        pool: who runs them; None means this process.
        log: where the progress goes; default: the standard error stream.

    Raises:
        BidError: the policy, the folder or a setting cannot be used.
    """
    if plan.steps < JUMP_STEPS[1] and any(cell.jump for cell in cells):
        least = JUMP_STEPS[1]
        raise BidError(
            f"steps is {plan.steps}, and the block jumps before step {least}; valid with a jump is {least} or more"
        )
    policy = load_policy(setup)
    _check_policy(cells, setup, policy)
    header: dict[str, Any] = {
        "format": FORMAT,
        "scene": setup.scene.name,
        "task_signature": setup.task.signature(),
        "bundle_sha256": bundle_sha256(setup.bundle),
        "runtime": policy.unbatched.runtime,
        "steps": plan.steps,
        SIMULATOR: setup.scene.simulator,
        "correction_sha256": None if policy.correction is None else policy.correction.sha256,
    }
    with closing(Results(folder, header)) as results:
        if results.unsaid:
            said = f"{folder / HEADER} does not say its {', '.join(results.unsaid)}, as older results do not"
            print(f"{said}; episodes of another version may stand beside those of this one", file=log or sys.stderr)
        units = plan.units(cells, set(results.rows))
        _run_units(units, pool or WorkerPool(), setup, policy, results, log or sys.stderr)
        header |= {**machine(), "batched": policy.batched}
        keys = {(cell.key, seed, index) for cell in cells for seed in plan.seeds for index in range(plan.episodes)}
        rows = {key: results.rows[key] for key in sorted(keys & set(results.rows))}
        latency = _latencies(cells, setup, policy)
        length = plan.steps if _as_published(setup, policy) else 0
        summaries = summarise(cells, rows, folder, setup.task.dt_ns / 1e9, latency, length)
        return BenchOutcome(summaries, rows, header)


def _check_policy(cells: Sequence[BenchCell], setup: BenchSetup, policy: BatchPolicy) -> None:
    """Raise BidError if the policy cannot serve a cell."""
    needy = next((cell.decoder for cell in cells if cell.needs_weak and not policy.unbatched.has_weak), None)
    if needy is not None:
        raise BidError(f"bundle {setup.bundle} has no weak policy, which decoder '{needy}' needs; use --no-weak")
    most = most_samples(policy.bundle)
    greedy = None if most is None else next((cell for cell in cells if (cell.samples or 1) > most), None)
    if greedy is not None:
        raise BidError(
            f"decoder '{greedy.decoder}' draws {greedy.samples} samples, but bundle {setup.bundle} has {most} for an "
            f"observation; valid is --samples up to {most}"
        )
    for name in {cell.decoder for cell in cells}:
        check_decoder(build_decoder(name), policy.unbatched)


def write_outcome(folder: Path, outcome: BenchOutcome) -> None:
    """Write ``summary.json`` and ``episodes.parquet`` to the folder of a bench.

    Args:
        folder: of the results.
        outcome: what :func:`run_bench` returned.
    """
    rows, cells = outcome.rows, [asdict(item) for item in outcome.summaries]
    content = {**outcome.header, "process_s": _process_s(rows.values()), "cells": cells}
    (folder / SUMMARY).write_text(json.dumps(content, indent=1) + "\n")
    write_parquet(folder, rows)


def write_page(folder: Path, outcome: BenchOutcome, scene: BenchScene) -> Path:
    """Write ``report.html``, whose films take up to minutes without a GPU, and return its path.

    Args:
        folder: of the results; the paths of the episodes lie in it.
        outcome: what :func:`run_bench` returned.
        scene: draws the films.
    """
    return write_report(folder, outcome.summaries, outcome.rows, outcome.header, scene)


def _run_units(
    units: Sequence[Unit], pool: WorkerPool, setup: BenchSetup, policy: BatchPolicy, results: Results, log: TextIO
) -> None:
    """Add the rows of finished units to the results, and show the progress."""
    with extra("bench", "the bench"):
        from tqdm import tqdm
    work, episodes = sum(len(unit.episodes) * unit.steps * unit.cell.effort for unit in units), 0
    period_s, ending = (0.5, "") if log.isatty() else (15.0, "\n")  # on a terminal the line overwrites itself
    look = {"mininterval": period_s, "smoothing": 0, "bar_format": _LINE + ending}
    with tqdm(total=work, file=log, disable=not units, **look) as bar:
        if not pool.ray:
            pool = replace(pool, workers=max(1, min(pool.workers, len(units))))
        make = partial(UnitRunner, setup, policy if pool.here else None)
        for done in pool.run(units, make, bar.update):
            results.add(done)
            episodes += len(done.rows)
            bar.set_postfix_str(f"{episodes} episodes done", refresh=False)


def _as_published(setup: BenchSetup, policy: BatchPolicy) -> bool:
    """Return whether published scores may stand beside these: of Push-T, of a diffusion policy as it is."""
    return setup.scene.name == PUSHT and policy.bundle.family == DIFFUSION and policy.correction is None


def _process_s(rows: Collection[Mapping[str, Any]]) -> float:
    """Time that processes spent on these episodes, s, whenever they ran; shared by W processes it took a W-th."""
    parts = ("encode_ms", "sample_ms", "choose_ms")
    decisions = sum(row["decisions"] * sum(row[part] for part in parts) for row in rows)
    return float(decisions + sum(row["steps"] * row["world_ms"] for row in rows)) / 1e3


def _latencies(cells: Sequence[BenchCell], setup: BenchSetup, policy: BatchPolicy) -> dict[str, float]:
    """Measure each decoder once, whatever it is disturbed by."""
    measured: dict[Any, float] = {}
    found = {}
    for cell in cells:
        config = (cell.decoder, cell.config(), cell.weak)
        if config not in measured:
            measured[config] = _decision_ms(cell, policy.unbatched, setup)
        found[cell.key] = measured[config]
    return found


def _decision_ms(cell: BenchCell, policy: Policy, setup: BenchSetup) -> float:
    """Return the median time of a decision from observation to choice, ms: alone on one thread, as on a robot.

    The first decisions are not counted: they compile the networks and have no previous decision.
    """
    scene, task = setup.scene, setup.task
    values = scene.observe(scene.make(0.0).reset(1))
    maker = DecisionMaker(policy, build_decoder(cell.decoder, cell.config()), task)
    history = {name: np.stack([np.asarray(value)] * maker.history.steps) for name, value in values.items()}
    times, stamp_ns = list[int](), START_NS
    while len(times) < _DECISIONS + 2:
        observation = Observation(stamp_ns, history)
        begin = time.monotonic_ns()
        if maker.decide(observation) is not None:  # with agreed rows it waits for longer than the action horizon
            times.append(time.monotonic_ns() - begin)
        stamp_ns += cell.horizon * task.dt_ns
    return float(np.median(times[2:])) / 1e6


def machine() -> dict[str, str]:
    """Return processor and versions that numbers may depend on."""
    found = {"processor": f"{os.cpu_count()} x {processor()}", "python": platform.python_version()}
    return found | {name: text for name in _PACKAGES if (text := installed_version(name))}
