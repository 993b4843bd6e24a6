"""A scripted demonstrator in the picking scene, in lockstep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bid_ros.control.trajectory import minimum_jerk
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.paths import share
from bid_ros.core.task import load_task
from bid_ros.episodes.log import scene_of
from bid_ros.tasks.base import PENDING
from bid_ros.tasks.picking.demonstration import ScriptedPicker
from bid_ros.tasks.picking.lockstep import CYCLE_S, PickingLockstep
from bid_ros.tasks.picking.score import PickingScore
from bid_ros.tasks.picking.string_path import picking_layout
from bid_ros.tasks.world import TaskTruth

PHASES = ("approach", "descend", "grasp", "lift", "carry", "lower", "release", "retreat", "hold")


def tool_start(seed: int) -> np.ndarray:
    """Where the tool starts in the episode of a seed, m."""
    return scene_of(load_task(share("config", "ur5_pick", "task.yaml")), seed)


def rig(seed: int, speed: float) -> PickingLockstep:
    """The episode of a seed at its start."""
    return PickingLockstep(picking_layout(seed, speed), tool_start(seed))


@dataclass(frozen=True)
class Demonstration:
    """What a demonstration was: its outcome, and phase and state at the end of each cycle."""

    outcome: str
    samples: tuple[tuple[str, TaskTruth], ...]

    def of(self, *phases: str) -> list[TaskTruth]:
        """States of some phases."""
        return [truth for phase, truth in self.samples if phase in phases]


def demonstrate(
    scene: PickingLockstep, picker: ScriptedPicker, knows: bool = True, lag_s: float = 0.0
) -> Demonstration:
    """Drive a whole demonstration, up to its outcome.

    Args:
        scene: at the start of its episode.
        picker: without a plan.
        knows: where the cup is now, not only where it was at the start; the plan is shifted accordingly.
        lag_s: by which the arm is behind the gripper, as a real servo is.
    """
    layout = scene.layout
    picker.plan(scene.truth.tool_position, layout.cup_start, layout.saucer, 0)
    times = np.arange(0.0, picker.duration, CYCLE_S)
    actions = picker.chunk_at(0, len(times), round(CYCLE_S * NANOSECONDS)).actions
    phases = np.searchsorted([picker.begin_of(phase) for phase in PHASES], times, side="right") - 1
    lag = round(lag_s / CYCLE_S)
    left = 1.0 - minimum_jerk(times - lag_s, picker.begin_of("carry"), picker.begin_of("lower"))
    scene.start_path()
    score, samples, shift = PickingScore(), [], np.zeros(3)
    for cycle, phase in enumerate(phases):
        if knows and not scene.truth.held:
            shift[:2] = scene.truth.bodies["cup"][0][:2] - layout.cup_start
        tool = actions[max(cycle - lag, 0), :3]
        truth = scene.cycle(tool + left[cycle] * shift, actions[cycle, 9])
        samples.append((PHASES[phase], truth))
        if score.update(truth.stamp_ns, truth.bodies, truth.tool_position, truth.gripper_width) != PENDING:
            break
    return Demonstration(score.outcome, tuple(samples))
