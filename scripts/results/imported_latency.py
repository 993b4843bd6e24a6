"""Measure what a decision's samples take with imported policies of full size, on the CPU.

The policies are those of full_size_policies.py, with random weights: the time does not depend on them. Each is written
as LeRobot writes it, imported by ``bid policy import`` and loaded. A decision encodes an observation with one new
image, as in a run, and draws N samples. All N take turns, so load hits them alike.

OUT keeps the bundles, and ``rows.jsonl`` with a line for each import and each decision. Run the command again and it
goes on where it was ended. The table is made of all lines.

Just before each decision a product of two matrices of 1024x1024 is timed on one core: the reference. CPU time is what
the process used, all threads together; beside other work the time on the clock is longer. "products" is the CPU time of
a decision in CPU times of its reference: load changes it least.

Usage: imported-latency [--out data/imported_latency] [--policies act,diffusion,flow,vqbet] [--runtimes openvino,onnx]
                           [--samples 1,2,4,8,16,32] [--rounds 30] [--threads 1] [--steps 10]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np
import torch
from tqdm import tqdm

from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.task import Task, load_task
from bid_ros.policy.base import Policy
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from results.full_size_policies import IMAGE, SIZES, write

PRODUCT: Final = 1024
AT_ONCE: Final = ("vqbet", "act")  # without steps; of act there is one chunk, not N
Row = dict[str, Any]
COLUMNS: Final[tuple[tuple[str, Callable[[Row], float], int], ...]] = (
    ("CPU, ms", lambda row: row["encode"] + row["sample"], 0),
    ("products", lambda row: (row["encode"] + row["sample"]) / row["product"], 1),
    ("on the clock, ms", lambda row: row["clock"], 0),
)


class Rows:
    """The lines of the file, kept as they come."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "rows.jsonl"
        self.kept: list[Row] = []
        whole = self._path.read_text().rpartition("\n")[0] if self._path.is_file() else ""  # not the half of a line
        self.kept = [json.loads(line) for line in whole.splitlines()]
        self._path.write_text("".join(f"{json.dumps(row)}\n" for row in self.kept))

    def add(self, row: Row) -> None:
        """Keep a line."""
        self.kept.append(row)
        with self._path.open("a") as file:
            file.write(f"{json.dumps(row)}\n")

    def of(self, **wanted: Any) -> list[Row]:
        """Return the lines with these values."""
        return [row for row in self.kept if wanted.items() <= row.items()]


def imported(name: str, steps: int, out: Path, rows: Rows) -> Path:
    """Return the folder of a policy's bundle and task; import it by a process of its own if it is not there."""
    folder = out / (name if name in AT_ONCE else f"{name}_{steps}")
    if (folder / "bundle").is_dir() and rows.of(imported=folder.name):
        return folder
    policy = write(name, folder)
    command = [sys.executable, "-m", "bid_ros.cli", "policy", "import", str(policy), "--out", str(folder / "bundle")]
    sampling = {"diffusion": ["--sampler", "ddim"], "flow": ["--sampler", "euler"]}.get(name, [])
    command += ["--task", str(folder / "task.yaml"), *sampling]
    begin = perf_counter()
    process = subprocess.Popen(command + (["--sampling-steps", str(steps)] if sampling else []))
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"error: {' '.join(command)} failed")
    peak = usage.ru_maxrss / 1e6
    size = sum(path.stat().st_size for path in (folder / "bundle").iterdir()) / 1e9
    said = {"seconds": round(perf_counter() - begin, 1), "peak_gb": round(peak, 2), "bundle_gb": round(size, 2)}
    rows.add({"imported": folder.name, **said})
    for path in policy.iterdir():
        path.unlink()  # a gigabyte that is not needed any more
    return folder


class Observations:
    """Observations of which each has one image that the one before had not."""

    def __init__(self, task: Task) -> None:
        self._values, self._rng = dict(blank_observation(task).values), np.random.default_rng(0)

    def next(self) -> Observation:
        """Return the next one."""
        seen = self._values[IMAGE]
        newest = self._rng.integers(0, 256, (1, *seen.shape[1:]), np.uint8)
        self._values[IMAGE] = np.concatenate([seen[1:], newest])
        return Observation(0, dict(self._values))


def decided(policy: Policy, observation: Observation, samples: int) -> Row:
    """Time the samples of one decision, after the reference; ms."""
    rng = np.random.default_rng(0)
    matrix = torch.from_numpy(rng.standard_normal((PRODUCT, PRODUCT), dtype=np.float32))
    start = process_time()
    torch.mm(matrix, matrix)
    middle, clock = process_time(), perf_counter()
    encoded = policy.encode(observation)
    after = process_time()
    policy.sample(encoded, samples, 0, rng)
    seconds = {"encode": after - middle, "sample": process_time() - after, "clock": perf_counter() - clock}
    return {name: round(1000 * value, 3) for name, value in {**seconds, "product": middle - start}.items()}


def measure(what: Row, folder: Path, counts: list[int], rounds: int, rows: Rows) -> None:
    """Time the decisions that are missing, and keep each."""
    left = [(index, count) for index in range(rounds) for count in counts if not rows.of(**what, round=index, n=count)]
    if not left:
        return
    task = load_task(folder / "task.yaml")
    policy = load_policy(load_bundle(folder / "bundle", task), task, what["runtime"], what["threads"])
    seen = Observations(task)
    for count in sorted({count for _, count in left}):
        policy.sample(policy.encode(seen.next()), count, 0, np.random.default_rng(0))  # what the first one prepares
    for index, count in tqdm(left, desc=f"{what['policy']} {what['runtime']}", mininterval=5.0):
        load = os.getloadavg()[0]
        rows.add({**what, "n": count, "round": index, "load": load, **decided(policy, seen.next(), count)})


def table(rows: Rows) -> Iterator[str]:
    """Yield the lines of the table, of all that was measured: p50 and p99 for each number of samples."""
    groups: dict[tuple[Any, ...], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    timed = [row for row in rows.kept if "n" in row]
    for row in timed:
        groups[row["policy"], row["steps"], row["runtime"], row["threads"]][row["n"]].append(row)
    counts = sorted({row["n"] for row in timed})
    yield "| policy | runtime | decisions | what | " + " | ".join(f"N = {count}" for count in counts) + " |"
    yield "|---" * (4 + len(counts)) + "|"
    for (name, steps, runtime, threads), own in sorted(groups.items()):
        what = f"{name}, {steps} steps" if steps else name
        where = f"{runtime}, {threads} thread{'s' if threads > 1 else ''}"
        most = max(len(kept) for kept in own.values())
        for title, number, digits in COLUMNS:
            cells = [_percentiles([number(row) for row in own[count]], digits) for count in counts]
            yield f"| {what} | {where} | {most} | {title} | {' | '.join(cells)} |"
    for row in rows.kept:
        if "imported" in row:
            yield f"\n{row['imported']}: import {row['seconds']} s, {row['peak_gb']} GB; bundle {row['bundle_gb']} GB"
    loads, products = [row["load"] for row in timed], [row["product"] for row in timed]
    yield f"\nreference, p50: {np.median(products):.1f} ms; load average {min(loads):.1f} to {max(loads):.1f}"


def _percentiles(values: list[float], digits: int) -> str:
    if not values:
        return "-"
    return " / ".join(f"{value:.{digits}f}" for value in np.percentile(values, [50, 99]))


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("data/imported_latency"))
    for name, default in (("policies", ",".join(sorted(SIZES))), ("runtimes", "openvino,onnx")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--samples", default="1,2,4,8,16,32")
    for name, number in (("rounds", 30), ("threads", 1), ("steps", 10)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, counts = Rows(options.out), [int(count) for count in options.samples.split(",")]
    names = options.policies.split(",")  # all imports come first: the memory of this process counts as a child's own
    folders = [imported(name, options.steps, options.out, rows) for name in names]
    for name, folder in zip(names, folders, strict=True):
        for runtime in options.runtimes.split(","):
            steps = 0 if name in AT_ONCE else options.steps
            what = {"policy": name, "steps": steps, "runtime": runtime, "threads": options.threads}
            measure(what, folder, [1] if name == "act" else counts, options.rounds, rows)
    print(*table(rows), sep="\n")


if __name__ == "__main__":
    main()
