"""Times `select`, and the published formulas in torch: PYTHONPATH=. python test/decoding/bench_select.py."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bid_ros.decoding import BidConfig, select, select_batch

STEPS, VALUES = 16, 10
ENVIRONMENTS = 50
CONFIG = BidConfig(observation_steps=2)


def case(samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strong and weak samples and a previous decision, all random."""
    rng = np.random.default_rng(samples)
    strong, weak = rng.normal(size=(2, samples, STEPS, VALUES))
    return strong, weak, rng.normal(size=(STEPS - CONFIG.executed, VALUES))


def median_us(function: Callable[[], object], repeats: int) -> float:
    """Median duration in microseconds, after a warm-up."""
    durations = []
    for index in range(repeats + 10):
        start = time.perf_counter_ns()
        function()
        if index >= 10:
            durations.append(time.perf_counter_ns() - start)
    return float(np.median(durations)) / 1e3


def torch_select(strong, weak, previous, pairwise):
    """The published selection, version 2, in torch: every pair of kept samples, `topk` for the nearest."""
    import torch

    samples, steps = strong.shape[:2]
    count, first = samples // CONFIG.mode_size, CONFIG.observation_steps - 1
    decays = CONFIG.decay ** torch.arange(previous.shape[0] - first)
    decays = decays / decays.sum()

    def keep(chunks):
        distances = torch.linalg.vector_norm(chunks[:, first : previous.shape[0]] - previous[first:], dim=-1)
        backward = (distances * decays).sum(-1)
        values, order = backward.topk(count, largest=False)
        return chunks[order], values, order

    chunks, backward, order = keep(strong)
    others, _, _ = keep(weak)
    plus = pairwise(chunks, chunks).topk(count // 2 + 1, largest=False, dim=-1).values[:, 1:].mean(-1)
    minus = pairwise(others, chunks).topk(count // 2, largest=False, dim=-1).values.mean(-1)
    reach = (steps * CONFIG.decay) ** 2
    ratio = reach / (reach + CONFIG.executed**2)
    return int(order[torch.argmin(ratio * backward + (1 - ratio) * (plus - minus))])


def torch_cases(samples: int) -> dict[str, Callable[[], int]]:
    """The torch selection with distances by subtraction and by `cdist`; empty without torch."""
    try:
        import torch
    except ImportError:
        return {}
    arrays = [torch.from_numpy(array).float() for array in case(samples)]

    def subtract(a, b):
        return torch.linalg.vector_norm(a[:, None] - b[None], dim=-1).mean(-1)

    def cdist(a, b):
        return torch.cdist(a.transpose(0, 1), b.transpose(0, 1)).mean(0)

    return {
        "torch, subtraction": lambda: torch_select(*arrays, subtract),
        "torch, cdist": lambda: torch_select(*arrays, cdist),
    }


def batch_cases(samples: int) -> dict[str, Callable[[], object]]:
    """The selections of many environments, one after the other and at once; empty without torch."""
    try:
        import torch
    except ImportError:
        return {}
    rows = [np.stack([array] * ENVIRONMENTS) for array in case(samples)]
    tensors = [torch.from_numpy(array) for array in rows]

    def one_by_one():
        return [select(strong, weak, previous, CONFIG).index for strong, weak, previous in zip(*rows, strict=True)]

    return {
        f"{ENVIRONMENTS} x select": one_by_one,
        f"select_batch, E = {ENVIRONMENTS}": lambda: select_batch(*tensors, CONFIG).index.tolist(),
    }


def main() -> None:
    """Print one line a case."""
    for samples in (16, 64, 256):
        repeats = 2000 if samples == 16 else 100
        strong, weak, previous = case(samples)
        functions: dict[str, Callable[[], object]] = {
            "select": lambda s=strong, w=weak, p=previous: select(s, w, p, CONFIG),
            "select, no previous": lambda s=strong, w=weak: select(s, w, None, CONFIG),
            **torch_cases(samples),
            **(batch_cases(samples) if samples < 256 else {}),
        }
        for name, function in functions.items():
            print(f"N = {samples:3d}  {name:22s} {median_us(function, repeats):9.0f} us")


if __name__ == "__main__":
    main()
