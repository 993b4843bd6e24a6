"""Measure decisions on a GPU and write docs/results/gpu.json.

Usage: gpu_report.py [--out FILE] [--tiny] [--record FILE]. Rows: N = 64 against N = 1; a policy of full size with
N = 16 + 16 in half precision beside its floor; choices in half precision against float32 on the CPU. The floor is what
a decision's operations and bytes take at the speed of this machine's own matrix products and copies, measured here.
--tiny measures small networks and works without a GPU: for tests of this script. --record writes the observations of
Push-T decisions that the last row reads.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.commands.tasks import task_path
from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task, load_task
from bid_ros.policy.agreement import compare_policies, decision_times, random_observations
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.registry import load_policy
from bid_ros.policy.runtimes.providers import find_gpu
from bid_ros.policy.runtimes.registry import build_runtime, missing

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDED: Final = ROOT / "docs" / "results" / "data" / "pusht_decisions.npz"
RUNTIMES: Final = ("torch:fp16", "torch:fp16:fuse", "cuda:fp16", "tensorrt:fp16", "tensorrt-rtx:fp16")
TIME_S: Final = 450.0  # after which nothing new begins


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    device: str = "cuda"
    runtimes: Sequence[str] = RUNTIMES
    widths: tuple[int, ...] = (512, 1024, 2048)
    blocks: int = 2
    step_embedding: int = 128
    stages: tuple[int, ...] = (64, 128, 256, 512)
    samples: int = 16
    many: int = 64
    rounds: int = 500
    warm_up: int = 20
    compared: int = 200
    matrix: int = 8192
    copied: int = 1 << 30  # bytes


TINY: Final = Sizes("cpu", ("torch",), (8, 16), 1, 16, (64, 80, 96, 112), 1, 2, 2, 1, 2, 128, 1 << 16)


class Report:
    """Rows and what was left out, with the reason."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.rows: list[dict[str, Any]] = []
        self.skipped: list[dict[str, str]] = []

    @contextmanager
    def part(self, row: str, runtime: str) -> Iterator[None]:
        """A measurement: one that fails does not end the report."""
        print(f"{time.monotonic() - self.begin:5.0f} s  {row}, {runtime}", file=sys.stderr, flush=True)
        try:
            yield
        except Exception as error:  # every library has its own
            self.skipped.append({"row": row, "runtime": runtime, "reason": " ".join(str(error).split())[:500]})

    def late(self, row: str, runtime: str) -> bool:
        """Whether there is no time for another measurement."""
        late = time.monotonic() - self.begin > TIME_S
        if late:
            self.skipped.append({"row": row, "runtime": runtime, "reason": f"{TIME_S:.0f} s had passed"})
        return late


def delivered(sizes: Sizes) -> dict[str, float]:
    """Return what the machine delivers: operations/s of a half precision matrix product, bytes/s of a copy."""
    import torch

    def fastest(call: Callable[[], object], times: int = 10) -> float:
        best = float("inf")
        for _ in range(times):
            begin = time.perf_counter()
            call()
            if sizes.device == "cuda":
                torch.cuda.synchronize()
            best = min(best, time.perf_counter() - begin)
        return best

    matrix = torch.randn(sizes.matrix, sizes.matrix, device=sizes.device, dtype=torch.float16)
    source = torch.zeros(sizes.copied, dtype=torch.uint8, device=sizes.device)
    target = torch.empty_like(source)
    return {
        "operations_per_s": 2 * sizes.matrix**3 / fastest(lambda: matrix @ matrix),
        "bytes_per_s": 2 * sizes.copied / fastest(lambda: target.copy_(source)),
    }


def full_size(sizes: Sizes, task: Task, folder: Path) -> tuple[Bundle, dict[str, float]]:
    """Write a policy of random weights: two ResNet-18 cameras and a U-Net. Return it, and what a decision computes."""
    from results.floor import operations
    from results.peers.full_size import UNET, parameters, write_full_size

    unet = replace(UNET, widths=sizes.widths, blocks=sizes.blocks, step_embedding=sizes.step_embedding)
    bundle, networks = write_full_size(folder, task, DiffusionConfig(prediction="epsilon"), unet, sizes.stages)
    calls, weights = bundle.settings.sampling_steps, [parameters(item) for item in networks]
    shape = {"sample": (sizes.samples, task.horizon, task.action_dim)}
    policies = [item for item in (bundle.strong, bundle.weak) if item is not None]
    encodings = {"frames": task.observation_steps, "encoder": 1}  # all frames are new in the observations used here
    return bundle, {
        "parameters": sum(weights[0]),
        "sampling_steps": calls,
        "operations": sum(
            sum(times * operations(graphs[role], {}).flops for role, times in encodings.items() if role in graphs)
            + calls * operations(graphs["denoiser"], shape).flops
            for graphs in policies
        ),
        # Each step reads the weights again, which no cache holds, in half precision.
        "bytes": sum(2 * (encoder + calls * denoiser) for encoder, denoiser in weights),
    }


def measure_full_size(report: Report, sizes: Sizes, task: Task, rates: dict[str, float]) -> None:
    """Time decisions of the policy of full size with every runtime."""
    row = f"full-size policy, N = {sizes.samples} + {sizes.samples}"
    with tempfile.TemporaryDirectory(prefix="bid_gpu_") as folder, report.part(row, "export"):
        bundle, work = full_size(sizes, task, Path(folder))
        floor = 1e3 * max(work["operations"] / rates["operations_per_s"], work["bytes"] / rates["bytes_per_s"])  # ms
        seen = random_observations(bundle, task, 8)
        for name in sizes.runtimes:
            if report.late(row, name):
                continue
            with report.part(row, name):
                policy = ready(bundle, task, name, sizes.samples, folder)
                (times,) = decision_times(bundle, task, [(policy, sizes.samples)], seen, sizes.rounds, sizes.warm_up)
                p50, p99 = float(np.median(times)), float(np.quantile(times, 0.99))
                found = {"p50_ms": p50, "p99_ms": p99, "floor_ms": floor, "p99_over_floor": p99 / floor}
                report.rows.append(
                    {"row": row, "runtime": name, **work, **found, "bar": "p99 at most 10 ms and 3 times the floor"}
                    | {"holds": p99 <= 10 and p99 <= 3 * floor}
                )


def measure_batch(report: Report, sizes: Sizes, task: Task, bundle: Bundle) -> None:
    """Time N = 64 against N = 1, alternating."""
    row = f"N = {sizes.many} against N = 1"
    for name in sizes.runtimes:
        if report.late(row, name):
            continue
        with report.part(row, name), tempfile.TemporaryDirectory(prefix="bid_gpu_") as folder:
            policy = ready(bundle, task, name, sizes.many, folder)
            seen = random_observations(bundle, task, 8)
            pair = [(policy, 1), (policy, sizes.many)]
            one, many = decision_times(bundle, task, pair, seen, sizes.rounds, sizes.warm_up)
            medians = float(np.median(one)), float(np.median(many))
            ratio = medians[1] / medians[0]
            found = {"p50_ms_of_1": medians[0], "p50_ms": medians[1], "ratio": ratio}
            report.rows.append(
                {"row": row, "runtime": name, "policy": bundle.name, **found, "bar": "at most 1.5"}
                | {"holds": ratio <= 1.5}
            )


def measure_agreement(report: Report, sizes: Sizes, task: Task, bundle: Bundle, seen: Sequence[Observation]) -> None:
    """Compare choices with float32 on the CPU, on recorded decisions."""
    row = "choices agree on recorded decisions"
    reference = load_policy(bundle, task, "onnx", os.cpu_count() or 1)
    for name in sizes.runtimes:
        if report.late(row, name):
            continue
        with report.part(row, name), tempfile.TemporaryDirectory(prefix="bid_gpu_") as folder:
            policy = ready(bundle, task, name, sizes.samples, folder)
            found = compare_policies(bundle, task, reference, policy, seen[: sizes.compared], sizes.samples)
            report.rows.append(
                {"row": row, "runtime": name, "policy": bundle.name, **vars(found), "bar": "at least 0.99"}
                | {"holds": found.agree >= 0.99}
            )


def ready(bundle: Bundle, task: Task, runtime: str, samples: int, folder: str) -> Policy:
    """Return a policy on a runtime, warmed up. Its engines go to a folder that is removed."""
    policy = load_policy(bundle, task, build_runtime(runtime, 1, folder, build=True))
    policy.warm_up(samples)
    return policy


def recorded(task: Task) -> list[Observation]:
    """Return the recorded observations, in order."""
    with np.load(RECORDED) as file:
        names = [item.name for item in task.observation]
        return [
            Observation(int(stamp), {name: file[name][index].astype(float) for name in names})
            for index, stamp in enumerate(file["stamp_ns"])
        ]


def record(path: Path) -> None:
    """Write the observations of Push-T decisions by BID, N = 16."""
    from bid_ros.bench.cell import Unit, build_cells
    from bid_ros.bench.rollout import load_policy as load_batch_policy
    from bid_ros.bench.rollout import run_unit
    from bid_ros.bench.scene import BenchSetup, pusht_scene

    task, seen = load_task(task_path("pusht")), []
    policy = load_batch_policy(BenchSetup(ROOT / "models" / "pusht", task, pusht_scene()))
    encode = policy.unbatched.encode

    def listen(observation: Observation, weak: bool = True) -> Any:
        seen.append(observation)
        return encode(observation, weak)

    policy.unbatched.encode = listen  # type: ignore[method-assign]
    lists = {"decoder": ("bid",), "horizon": ("1",), "noise": (0.0,), "drift": (0.0,), "delay": (0,), "jump": (0.0,)}
    lists |= {"samples": (16,)}
    run_unit(
        Unit(build_cells(task, lists)[0], 3200, (0,), 200), BenchSetup(policy.bundle.path, task, pusht_scene()), policy
    )
    values = {item.name: np.float32([one.values[item.name] for one in seen]) for item in task.observation}
    np.savez_compressed(path, stamp_ns=np.array([one.stamp_ns for one in seen]), **values)
    print(f"{path}: {len(seen)} decisions", file=sys.stderr)


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "gpu.json")
    parser.add_argument("--tiny", action="store_true", help="small sizes, on the CPU")
    parser.add_argument("--record", type=Path, help="write observations of Push-T decisions, and end")
    options = parser.parse_args()
    if options.record:
        record(options.record)
        return 0
    try:
        sizes, machine = (TINY, {"gpu": "none"}) if options.tiny else (Sizes(), {"gpu": vars(find_gpu())})
        if problem := missing("torch"):
            raise BidError(problem)
        import torch

        if not options.tiny and not torch.cuda.is_available():
            raise BidError(f"torch {torch.__version__} cannot use the GPU; install a build of torch with CUDA")
    except BidError as error:
        print(f"error: nothing to measure: {error}; --tiny runs this script without a GPU", file=sys.stderr)
        return 2
    task, report = load_task(task_path("franka_place")), Report()
    machine |= {"python": platform.python_version(), "torch": str(torch.__version__), "cuda": torch.version.cuda}
    rates = delivered(sizes)
    problems = {name: missing(name) for name in sizes.runtimes}
    report.skipped += [{"row": "all", "runtime": name, "reason": why} for name, why in problems.items() if why]
    sizes = replace(sizes, runtimes=[name for name in sizes.runtimes if not problems[name]])
    measure_full_size(report, sizes, task, rates)
    measure_batch(report, sizes, task, load_bundle(ROOT / "models" / "franka_place", task))
    pusht = load_task(task_path("pusht"))
    measure_agreement(report, sizes, pusht, load_bundle(ROOT / "models" / "pusht", pusht), recorded(pusht))
    content = {
        "command": "scripts/gpu_report.sh" + " --tiny" * options.tiny,
        "machine": machine,
        "delivered": rates,
        "rows": report.rows,
        "skipped": report.skipped,
        "seconds": round(time.monotonic() - report.begin),
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n")
    print(f"wrote {options.out}: {len(report.rows)} rows, {len(report.skipped)} left out", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
