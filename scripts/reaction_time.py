"""Measures in lockstep how long after a jump of the cup the set-point changes: ``reaction_time.py DECODER RATE...``.

Each episode is rehearsed with and without the jump, once with each rate in Hz. A rehearsal is deterministic, so the
first difference of the two is the reaction.
"""

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.episodes.rehearsal import Rehearsal, RehearsalConfig
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.decision_rate import decisions_a_step, decoder_between
from bid_ros.policy.registry import load_policy
from bid_ros.system.folder import find_system
from bid_ros.tasks.base import STEP_NS

JUMPS: Final = 40
SEED: Final = 100
AFTER_S: Final = 0.5  # the tool is on its way to the cup, and has not let go of the object
WITHIN_S: Final = 0.5  # the jump comes at a random time of these
JUMP_M: Final = 0.03
CHANGED_M: Final = 1e-4
WATCHED_S: Final = 0.6


class Jumped:
    """The path of a cup that jumps by ``JUMP_M`` along y at a time in s."""

    def __init__(self, path: Any, at_s: float) -> None:
        self._path, self._at_s = path, at_s

    def position(self, t_s: float) -> NDArray[np.float64]:
        """Return where the cup is, ``(2,)`` m."""
        place: NDArray[np.float64] = self._path.position(t_s) + np.array([0.0, JUMP_M if t_s >= self._at_s else 0.0])
        return place


class JumpingStage:
    """A stage whose cup jumps at ``at_s``; notes the poses ``(3,)`` m that it was stepped to."""

    def __init__(self, stage: Any) -> None:
        self._stage, self.at_s = stage, float("inf")
        self.places: list[NDArray[np.float64]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    def begin(self, *given: Any) -> None:
        """Lay out the episode."""
        self._stage.begin(*given)
        self._stage._path, self.places = Jumped(self._stage._path, self.at_s), []

    def step(self, position: NDArray[np.float64], *given: Any) -> str:
        """Go one step on; the episode ends when the reaction has been seen."""
        self.places.append(np.array(position))
        found = str(self._stage.step(position, *given))
        return found or ("watched" if len(self.places) * STEP_NS * 1e-9 > AFTER_S + WITHIN_S + WATCHED_S else "")


def reaction_s(rehearsal: Rehearsal, stage: JumpingStage, seed: int, at_s: float) -> float:
    """Return the time from a jump to the first set-point that it changes, s; NaN if none does."""
    found = []
    for stage.at_s in (float("inf"), at_s):
        rehearsal.run(0, seed, 0.0)
        found.append(np.array(stage.places))
    rows = min(map(len, found))
    changed = np.linalg.norm(found[1][:rows] - found[0][:rows], axis=1) > CHANGED_M
    # The arm is behind its set-point by a constant lag.
    lag_s = RehearsalConfig().arm_lag_s
    return float(changed.argmax()) * STEP_NS * 1e-9 - lag_s - at_s if changed.any() else float("nan")


def main(decoder: str, rates: list[float]) -> None:
    """Print the percentiles for each rate."""
    system = find_system("franka_place")
    task, samples = system.task, system.settings.policy.samples
    bundle = load_bundle(Path(system.bundle()), task)
    policy, stage = load_policy(bundle, task, "auto"), JumpingStage(system.stage())
    times = AFTER_S + WITHIN_S * np.random.default_rng(SEED).random(JUMPS)
    for rate in rates:
        count = decisions_a_step(task, rate)
        chosen = bundle_decoder(decoder_between(decoder, count), bundle, task, samples, 1)
        rehearsal = Rehearsal(task, DecisionMaker(policy, chosen, task), stage, decisions=count)
        found = np.array([reaction_s(rehearsal, stage, SEED + jump, float(at_s)) for jump, at_s in enumerate(times)])
        seen = 1e3 * found[np.isfinite(found)]
        low, middle, high = np.percentile(seen, (1, 50, 99))
        print(
            f"{decoder} {rate:g} Hz: p1 {low:.0f}, p50 {middle:.0f}, p99 {high:.0f} ms of {len(seen)} jumps", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1], [float(rate) for rate in sys.argv[2:]])
