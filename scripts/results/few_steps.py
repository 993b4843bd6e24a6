"""Show what fewer denoising steps do to the samples of a system's policy: spread, modes, distance to the full sampler.

Usage: few-steps SYSTEM [--steps 4,3,2] [--episodes 6] [--bundle BUNDLE] [--student BUNDLE]. The decisions are those
of a rehearsal with the bundle's own steps, from seed 4350, which no table uses. Each is sampled 64 times with each
number of steps, and by the student that was distilled from the bundle.

Spread: standard deviation over the samples of a decision, as a share of the full sampler's. Modes: clusters of samples
(average linkage, cut at half the median diameter of the full sampler's samples). Distance: energy distance to the full
sampler's samples (Szekely & Rizzo 2013), as a share of the mean distance of two of them; 0 if nothing can tell them
apart.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from bid_ros.core.observation import Observation
from bid_ros.episodes.rehearsal import Rehearsal
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.draft import Draft
from bid_ros.policy.registry import load_policy
from bid_ros.system.folder import System, find_system

Array = NDArray[np.float64]
SAMPLES, DECISIONS, FIRST_SEED, SPEED = 64, 80, 4350, 0.02  # m/s of what moves in the scene
STRENGTHS: Final = ("strong", "weak")


class Listener(DecisionMaker):
    """A decision maker that keeps each observation."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.observations: list[Observation] = []

    def begin(self, observation: Observation) -> Draft | None:
        """Begin as usual, and keep the observation."""
        draft = super().begin(observation)
        if draft is not None:
            self.observations.append(observation)
        return draft


def rehearsed(system: System, bundle: Bundle, policy: Policy, episodes: int) -> list[Observation]:
    """Return observations of rehearsed episodes, evenly chosen."""
    task = system.task
    maker = Listener(policy, bundle_decoder("bid", bundle, task, 16, 1), task)
    rehearsal = Rehearsal(task, maker, system.stage())
    for episode in range(episodes):
        rehearsal.run(episode, FIRST_SEED + episode, SPEED)
    rehearsal.close()
    return maker.observations[:: max(1, len(maker.observations) // DECISIONS)]


def with_steps(bundle: Bundle, steps: int) -> Bundle:
    """Return the bundle with another number of denoising steps, and without its graph that has them inside."""
    files = [
        None if graphs is None else {role: path for role, path in graphs.items() if role != "sampler"}
        for graphs in (bundle.strong, bundle.weak)
    ]
    settings = replace(bundle.settings, sampling_steps=steps)
    return replace(bundle, settings=settings, strong=files[0] or {}, weak=files[1])


def samples(policy: Policy, observations: list[Observation], scale: Array, seed: int) -> list[Array]:
    """Return ``(E, N, H D)`` strong and, where there are some, weak samples, in standard deviations of the actions."""
    weak = SAMPLES if policy.has_weak else 0
    drawn = [
        policy.sample(policy.encode(item), SAMPLES, weak, np.random.default_rng([seed, k]))
        for k, item in enumerate(observations)
    ]
    parts = [np.array([pair[0] for pair in drawn])]
    if weak:
        parts.append(np.array([pair[1] for pair in drawn]))
    return [(part / scale).reshape(len(observations), SAMPLES, -1) for part in parts]


def distances(one: Array, other: Array) -> Array:
    """Return ``(N, M)`` distances between two sets of samples."""
    return np.asarray(np.linalg.norm(one[:, None] - other[None], axis=2))


def within(points: Array) -> float:
    """Return the mean distance of two different samples."""
    return float(distances(points, points).sum() / (len(points) * (len(points) - 1)))


def row(found: Array, full: Array, cut: float) -> str:
    """Return the cells of one sampler and one strength."""
    spread = found.std(axis=1).mean() / full.std(axis=1).mean()
    modes = np.mean([len(np.unique(fcluster(linkage(item, "average"), cut, "distance"))) for item in found])
    apart = np.mean([2 * distances(a, b).mean() - within(a) - within(b) for a, b in zip(found, full, strict=True)])
    return f"{spread:.2f} | {modes:.2f} | {apart / np.mean([within(item) for item in full]):.3f}"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system")
    parser.add_argument("--steps", default="4,3,2")
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--bundle", default="", help="folder (default: the system's)")
    parser.add_argument("--student", default="", help="bundle that was distilled from it")
    options = parser.parse_args()
    system = find_system(options.system)
    bundle = load_bundle(options.bundle or f"models/{system.task.name}", system.task)
    full = load_policy(bundle, system.task)
    contenders = {str(steps): with_steps(bundle, steps) for steps in map(int, options.steps.split(","))}
    contenders = {str(bundle.settings.sampling_steps): bundle} | contenders
    if options.student:
        contenders["student"] = load_bundle(options.student, system.task)
    observations = rehearsed(system, bundle, full, options.episodes)
    reference = samples(full, observations, bundle.action_spread, 1)
    cuts = [0.5 * float(np.median([distances(item, item).max() for item in part])) for part in reference]
    print(f"{len(observations)} decisions, {SAMPLES} samples each\n")
    print("| steps | policy | spread | modes | distance |\n|---|---|---|---|---|")
    for name, contender in contenders.items():
        found = samples(load_policy(contender, system.task), observations, bundle.action_spread, 2)
        for strength, part, whole, cut in zip(STRENGTHS, found, reference, cuts, strict=False):
            print(f"| {name} | {strength} | {row(part, whole, cut)} |", flush=True)


if __name__ == "__main__":
    main()
