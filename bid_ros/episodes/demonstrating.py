"""Demonstrations in lockstep: the scripted teleoperator on a task's stage, without ROS, real time or bags.

Servo, cameras and observation code are those of a live recording. The arm is a pure delay, as in a rehearsal. A data
set that takes an hour to record takes minutes this way, and no busy computer cuts gaps into it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.homing import HomingPlan
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.control.trajectory import ChunkSource
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.observation import Observation
from bid_ros.core.rotation import DOWN_6D, Array, matrix_from_quaternion, matrix_to_6d
from bid_ros.core.task import Task
from bid_ros.episodes.log import scene_of
from bid_ros.episodes.rehearsal import RehearsalConfig, Trial
from bid_ros.recording.dataset import Dataset, first_row
from bid_ros.recording.references import check_recorded
from bid_ros.tasks.base import STEP_NS, Stage
from bid_ros.tasks.registry import find_demonstrator

CHUNK_STEPS: Final = 10
CHUNK_DT_NS: Final = 50_000_000
FINGERS_S: Final = 0.9  # until the fingers have opened or closed
AFTER_S: Final = 0.4  # kept after the outcome, as in a recording


class LockstepDemonstrations:
    """Plays scripted demonstrations of one task. One thread only.

    Args:
        task: a task with a scripted teleoperator. It observes the tool's position and rotation and the gripper's width.
        stage: of the task; the caller closes it.
        arm: of a task that commands joints, else None.

    Raises:
        TaskError: the task has no scripted teleoperator.
        RecordingError: its actions are not what is recorded.
    """

    def __init__(self, task: Task, stage: Stage, arm: ArmModel | None = None) -> None:
        check_recorded(task)
        # Rows are single: training makes the windows.
        self._task, self._stage, self._arm = replace(task, observation_steps=1), stage, arm
        self._chunks = TaskChunks(task, arm)
        self._demonstrator = find_demonstrator(task)
        self._signature = task.signature()

    def record(self, style: str, seed: int) -> Dataset | None:
        """Return the demonstration of a seed as a data set of one episode. None if it does not succeed.

        Raises:
            BidError: the style or the seed is not valid.
        """
        task, stage, start = self._task, self._stage, scene_of(self._task, seed)
        stage.begin(seed, start, 0.0)
        trial = Trial(task, RehearsalConfig(latency_s=0.0), stage, start, arm=self._arm)
        for position, opening in self._demonstrator.preparation(style, seed, stage.bodies):
            tool, quaternion = stage.measured
            turned = matrix_to_6d(matrix_from_quaternion(quaternion))
            plan = HomingPlan(tool, turned, position, DOWN_6D, opening, trial.now_ns)
            for _ in self._driven(trial, plan, plan.duration + FINGERS_S):
                trial.advance()
        teleoperator = self._demonstrator.plan(style, seed, stage.measured[0], stage.bodies, trial.now_ns)
        outcome, rows, actions = self._play(trial, teleoperator, teleoperator.duration)
        first = first_row(actions, task)
        return self._dataset(rows[first:], actions[first:], style, seed) if outcome == "success" else None

    def _play(
        self, trial: Trial, source: ChunkSource | PlannedTeleoperator, duration_s: float
    ) -> tuple[str, list[Observation], Array]:
        """Return the outcome of a demonstration, what was observed, and what was commanded then ``(T, D)``."""
        outcome, end_ns = "", trial.now_ns + round(duration_s * NANOSECONDS)
        rows, actions = list[Observation](), list[Array]()
        for step in self._driven(trial, source, duration_s):
            if trial.now_ns >= end_ns:
                break
            due = step * STEP_NS % self._task.dt_ns == 0
            if due:
                trial.observe()
                trial.look()
                rows.append(trial.buffer.assemble(trial.now_ns))
            found = trial.advance()
            if due:
                actions.append(self._action(trial))
            if found and not outcome:
                outcome, end_ns = found, trial.now_ns + round(AFTER_S * NANOSECONDS)
        return outcome, rows, np.array(actions)

    def _driven(self, trial: Trial, source: ChunkSource | PlannedTeleoperator, duration_s: float) -> Iterator[int]:
        """Yield the numbers of the steps of a motion, and send its chunks. The caller advances the trial."""
        if trial.joints is not None:
            self._chunks.begin(trial.joints, trial.now_ns)
        for step in range(round(duration_s * NANOSECONDS) // STEP_NS):
            if step * STEP_NS % CHUNK_DT_NS == 0:
                trial.send(self._chunks.of(source.chunk_at(trial.now_ns, CHUNK_STEPS, CHUNK_DT_NS)))
            yield step

    def _action(self, trial: Trial) -> Array:
        """Return what was commanded last, ``(D,)``."""
        assert trial.output is not None and trial.gripper is not None  # a chunk covers every step
        setpoint, joints = trial.output.setpoint, trial.output.joints
        parts = {
            "position": setpoint.position,
            "rotation_6d": matrix_to_6d(matrix_from_quaternion(setpoint.quaternion)),
            "joints": np.empty(0) if joints is None else joints.positions,
            "gripper": np.array([trial.gripper]),
        }
        return np.concatenate([parts[feature.kind] for feature in self._task.action])

    def _dataset(self, rows: list[Observation], actions: Array, style: str, seed: int) -> Dataset:
        names = [feature.name for feature in self._task.observation]
        return Dataset(
            observations={name: np.stack([row.values[name][-1] for row in rows]) for name in names},
            actions=actions,
            stamps_ns=np.array([row.stamp_ns for row in rows], dtype=np.int64),
            episode_ends=np.array([len(rows)], dtype=np.int64),
            labels=(style,),
            seeds=np.array([seed], dtype=np.uint64),
            task=self._task.name,
            task_signature=self._signature,
        )


def recorded(demonstrations: LockstepDemonstrations, style: str, seed: int, folder: Path) -> Dataset | None:
    """Return :meth:`LockstepDemonstrations.record`, from its file in ``folder`` if it was recorded before."""
    file = folder / f"{style}_{seed}.npz"
    if file.exists():
        return Dataset.load(file)
    found = demonstrations.record(style, seed)
    if found is not None:
        found.save(file)
    return found
