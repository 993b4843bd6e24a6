"""Rehearsal: a policy and a decoder place the object in lockstep, without ROS, real time or physics.

Everything that decides is the real thing: cameras, observation history, policy, decoder, safety envelope and servo.
Only the arm is a pure delay and contact is geometry. So twenty episodes take half a minute, the same on any computer,
and what they say about a policy is worth looking at before the twin is started; what counts is measured there.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.arms.servo import ChunkServo, ServoConfig
from bid_ros.checks import check_range
from bid_ros.chunk import NANOSECONDS, ActionChunk
from bid_ros.errors import BidError
from bid_ros.evaluation.episode import scene_of
from bid_ros.evaluation.summary import EpisodeResult
from bid_ros.observation import ObservationBuffer
from bid_ros.policy.decide import DecisionMaker
from bid_ros.rotation import DOWN_QUATERNION, matrix_from_quaternion, matrix_to_6d
from bid_ros.safety.envelope import Envelope
from bid_ros.sim.cup_path import CupPath, episode_scene
from bid_ros.sim.geometry import (
    CUP_HEIGHT,
    CUP_RIM_RADIUS,
    OBJECT_BOTTOM_BELOW_TOOL,
    OBJECT_DIAMETER,
    OBJECT_RADIUS,
)
from bid_ros.sim.kinematic import KinematicScene
from bid_ros.sim.scoring import ScoreConfig
from bid_ros.task import Task

Array = NDArray[np.float64]
STEP_NS: Final = 10_000_000
BEGIN_NS: Final = NANOSECONDS
DOWN: Final = np.array(DOWN_QUATERNION)
FINGER_SPEED: Final = 0.1  # m/s of the opening
RELEASED_M: Final = OBJECT_DIAMETER + ScoreConfig().release_margin
PLAY_M: Final = CUP_RIM_RADIUS - OBJECT_RADIUS  # by which the object may be beside the axis at the rim
TOUCH_M: Final = 0.004  # by which it may be farther: the grip gives way


@dataclass(frozen=True)
class RehearsalConfig:
    """Delays of the system that is imitated, in s; the defaults are what the twin was measured to have.

    Attributes:
        latency_s: from the stamp of the frames until the chunk is in force.
        arm_lag_s: of the measured pose behind the set-point.
        lookahead_s: of the servo.
    """

    latency_s: float = 0.045
    arm_lag_s: float = 0.03
    lookahead_s: float = 0.04

    def __post_init__(self) -> None:
        for name in ("latency_s", "arm_lag_s", "lookahead_s"):
            check_range("rehearsal", name, getattr(self, name), 0, 0.5, BidError, "s")


class Rehearsal:
    """Rehearses episodes of one task, one after the other. One thread only.

    Args:
        task: a placing task with the twin's two cameras.
        maker: policy and decoder.
        config: delays.

    Raises:
        CameraError: if no offscreen rendering works here.
    """

    def __init__(self, task: Task, maker: DecisionMaker, config: RehearsalConfig | None = None) -> None:
        self._task, self._maker = task, maker
        self._config = config or RehearsalConfig()
        height, width = task.cameras[0].shape[:2]
        self._scene = KinematicScene(width, height, [camera.name for camera in task.cameras])
        self._envelope = Envelope(task)

    def run(self, episode: int, seed: int, cup_speed: float, label: str = "") -> EpisodeResult:
        """Rehearse the episode of a seed, with the start and the cup's path it has in the twin.

        The outcome is ``success``, ``timeout``, ``dropped`` (released beside or above the cup), ``touched`` (went down
        on the rim) or ``stopped: <reason>`` (the safety envelope refused a chunk).
        """
        trial = _Trial(self._task, self._config, scene_of(self._task, seed), episode_scene(seed, cup_speed).path)
        self._maker.reset(seed)
        self._scene.home()
        every = self._task.dt_ns // STEP_NS
        for step in range(round(self._task.episode_timeout * NANOSECONDS) // STEP_NS):
            trial.observe()
            if step % every == 0:
                refusal = self._decide(trial)
                if refusal:
                    return trial.result(episode, seed, f"stopped: {refusal}", label)
            outcome = trial.advance()
            if outcome:
                return trial.result(episode, seed, outcome, label)
        return trial.result(episode, seed, "timeout", label)

    def close(self) -> None:
        """Free the renderer."""
        self._scene.close()

    def _decide(self, trial: _Trial) -> str:
        """Look, decide and hand the chunk over; return why it was refused, or nothing."""
        self._scene.move(*trial.measured)
        for name, image in self._scene.images(trial.width, trial.held, trial.cup).items():
            trial.buffer.add(name, trial.now_ns, image)
        record = self._maker.decide(trial.buffer.assemble(trial.now_ns))
        if record is None:
            return ""
        verdict = self._envelope.check(record.chunk, trial.now_ns, trial.measured[0])
        trial.pending.append((trial.now_ns + round(self._config.latency_s * NANOSECONDS), record.chunk))
        return "" if verdict.ok else verdict.reason


class _Trial:
    """State of one episode."""

    def __init__(self, task: Task, config: RehearsalConfig, start: Array, path: CupPath) -> None:
        self._path = path
        self._servo = ChunkServo(task, ServoConfig(lookahead_s=config.lookahead_s))
        self._servo.start(start, DOWN, BEGIN_NS)
        lag = round(config.arm_lag_s * NANOSECONDS) // STEP_NS
        self._poses = deque([(start, DOWN)] * (lag + 1), maxlen=lag + 1)
        self._opening = False
        self._touched = False
        self.now_ns = BEGIN_NS
        self.buffer = ObservationBuffer(task)
        self.pending: deque[tuple[int, ActionChunk]] = deque()
        self.width, self.held = OBJECT_DIAMETER, True

    @property
    def elapsed_s(self) -> float:
        return (self.now_ns - BEGIN_NS) / NANOSECONDS

    @property
    def measured(self) -> tuple[Array, Array]:
        return self._poses[0]

    @property
    def cup(self) -> Array:
        return self._path.position(self.elapsed_s)

    def observe(self) -> None:
        position, quaternion = self.measured
        self.buffer.add("tool_position", self.now_ns, position)
        self.buffer.add("tool_rotation", self.now_ns, matrix_to_6d(matrix_from_quaternion(quaternion)))
        self.buffer.add("gripper_width", self.now_ns, np.array([self.width]))

    def advance(self) -> str:
        """Go on by one step; return the outcome if there is one."""
        while self.pending and self.pending[0][0] <= self.now_ns:
            self._servo.accept(self.pending.popleft()[1])
        output = self._servo.step(self.now_ns)
        self._poses.append((output.setpoint.position, output.setpoint.quaternion))
        if output.gripper_width is not None:
            self._opening = output.gripper_width > OBJECT_DIAMETER
        change = FINGER_SPEED * STEP_NS / NANOSECONDS * (1 if self._opening else -1)
        self.width = min(max(self.width + change, OBJECT_DIAMETER), 0.08)
        self.now_ns += STEP_NS
        return self._judge()

    def _judge(self) -> str:
        position = self.measured[0]
        beside = math.hypot(*(position[:2] - self.cup))
        depth = CUP_HEIGHT - (position[2] - OBJECT_BOTTOM_BELOW_TOOL)
        if depth > 0 and beside > PLAY_M + TOUCH_M:
            self._touched = True
        if self.width <= RELEASED_M:
            return ""
        self.held = False
        if self._touched:
            return "touched"
        return "success" if beside <= PLAY_M and depth > -0.01 else "dropped"

    def result(self, episode: int, seed: int, outcome: str, label: str) -> EpisodeResult:
        if outcome == "timeout" and self._touched:
            outcome = "touched"
        return EpisodeResult(episode, seed, outcome == "success", outcome, self.elapsed_s, label)
