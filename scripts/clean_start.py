"""Show what the sampler does to a warm start from the clean decision: deterministic or not, few steps or many.

Usage: clean_start.py [EPISODES]. Push-T, a decision every step, no noise, seed 21, which no table uses.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.bench.cell import make_cell
from bid_ros.bench.grid import Unit
from bid_ros.bench.rollout import UnitDone, run_unit
from bid_ros.bench.scene import Setup, pusht_scene
from bid_ros.core.task import load_task
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.sampler import (
    Denoise,
    DiffusionConfig,
    Sampler,
    Samples,
    cumulative_alphas,
    sampling_timesteps,
)

ROOT = Path(__file__).resolve().parents[1]


class AncestralSampler(Sampler):
    """Song Eq. 12 with eta = 1, which is DDPM where all training steps are visited: fresh noise at every step."""

    def __init__(self, config: DiffusionConfig) -> None:
        super().__init__(config)
        self._rng = np.random.default_rng(0)

    def run(
        self,
        denoise: Denoise,
        noise: Samples,
        start: NDArray[np.float32] | None = None,
        start_mode: str = "noise",
    ) -> Samples:
        """Denoise from ``noise`` or, where there is one, from the clean ``start``."""
        del start_mode
        alphas = cumulative_alphas(self._config.train_steps)
        visited = sampling_timesteps(self._config)
        sample = noise[0] if start is None else np.ascontiguousarray(np.broadcast_to(start, noise[0].shape))
        for step, after in zip(visited, [*(alphas[t] for t in visited[1:]), 1.0], strict=True):
            alpha = alphas[step]
            predicted = denoise(sample, np.array([step], dtype=np.int64))
            clean = (sample - np.sqrt(1 - alpha) * predicted) / np.sqrt(alpha)
            clean = np.clip(clean, -self._config.clip, self._config.clip)
            direction = (sample - np.sqrt(alpha) * clean) / np.sqrt(1 - alpha)
            variance = (1 - after) / (1 - alpha) * (1 - alpha / after)
            fresh = np.sqrt(variance) * self._rng.standard_normal(sample.shape)
            sample = (np.sqrt(after) * clean + np.sqrt(1 - after - variance) * direction + fresh).astype(np.float32)
        return sample


def score(decoder: str, steps: int, ancestral: bool, episodes: int) -> float:
    """Return the mean score of a decoder with a sampler of ``steps``."""
    task = load_task(ROOT / "config/pusht.yaml")
    setup = Setup(ROOT / "models/pusht", task, pusht_scene())
    bundle = load_bundle(setup.bundle, task)
    bundle = replace(bundle, settings=replace(bundle.settings, sampling_steps=steps))
    policy = BatchPolicy(bundle, task)
    if ancestral:
        policy._sampler = AncestralSampler(bundle.settings)
    cell = make_cell(task, decoder=decoder, horizon=1)
    *_, done = run_unit(Unit(cell, 21, tuple(range(episodes)), 300), setup, policy)
    assert isinstance(done, UnitDone)
    return float(np.mean([row["score"] for row in done.rows]))


def main() -> int:
    """Print the table."""
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    print("| denoising steps | fresh noise at each | vanilla | warmstart-clean |\n|---|---|---|---|", flush=True)
    for steps in (6, 100):
        for ancestral in (False, True):
            scores = [score(decoder, steps, ancestral, episodes) for decoder in ("vanilla", "warmstart-clean")]
            print(f"| {steps} | {'yes' if ancestral else 'no'} | {scores[0]:.3f} | {scores[1]:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
