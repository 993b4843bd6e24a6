"""One episode in lockstep: what is between decisions and a stage."""

from collections import deque
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from bid_ros.control.servo import ChunkServo
from bid_ros.control.servo_base import ServoConfig
from bid_ros.control.setpoint import Setpoint
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.observation import History, ObservationBuffer
from bid_ros.core.rotation import DOWN_QUATERNION, Array, matrix_from_quaternion, matrix_to_6d
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.tasks.base import STEP_NS, Stage

BEGIN_NS: Final = NANOSECONDS
DOWN: Final = np.array(DOWN_QUATERNION)
Seconds = Annotated[float, Field(ge=0, le=0.5)]


@settings
class RehearsalConfig:
    """Delays of the imitated system, in s. The defaults were measured in the twin.

    Attributes:
        latency_s: from the stamp of the frames until the chunk takes effect.
        arm_lag_s: lag of the measured pose behind the set-point.
        lookahead_s: lookahead of the servo.
    """

    latency_s: Seconds = 0.045
    arm_lag_s: Seconds = 0.03
    lookahead_s: Seconds = 0.04


class Trial:
    """One episode: applies the latency of chunks, the servo and the lag of the arm. The clock is the stage's.

    Args:
        task: the task.
        config: delays.
        stage: laid out for the episode.
        start: ``(3,)`` position of the tool, m, base frame.
        history: observed steps that the policy wants. None: those of the task.

    Attributes:
        now_ns: time of the episode.
        buffer: what was observed.
        setpoint: the newest set-point of the servo, None before the first step.
        gripper: the newest width asked for, m; None before the first.
    """

    def __init__(
        self, task: Task, config: RehearsalConfig, stage: Stage, start: Array, history: History | None = None
    ) -> None:
        self._stage = stage
        self._servo = ChunkServo(task, ServoConfig(lookahead_s=config.lookahead_s))
        self._servo.start(start, DOWN, BEGIN_NS)
        self._latency_ns = round(config.latency_s * NANOSECONDS)
        lag = round(config.arm_lag_s * NANOSECONDS) // STEP_NS
        self._setpoints = deque([(start, DOWN)] * (lag + 1), maxlen=lag + 1)
        self._pending: deque[tuple[int, ActionChunk]] = deque()
        self.setpoint: Setpoint | None = None
        self.gripper: float | None = None
        self.now_ns = BEGIN_NS
        self.buffer = ObservationBuffer(task, history=history)

    @property
    def elapsed_s(self) -> float:
        """Time since the begin, s."""
        return (self.now_ns - BEGIN_NS) / NANOSECONDS

    def observe(self) -> None:
        """Take the state of tool and gripper into the buffer."""
        position, quaternion = self._stage.measured
        self.buffer.add("tool_position", self.now_ns, position)
        self.buffer.add("tool_rotation", self.now_ns, matrix_to_6d(matrix_from_quaternion(quaternion)))
        self.buffer.add("gripper_width", self.now_ns, np.array([self._stage.width]))

    def look(self) -> None:
        """Take the images of now into the buffer."""
        for name, image in self._stage.images().items():
            self.buffer.add(name, self.now_ns, image)

    def send(self, chunk: ActionChunk) -> None:
        """Let a chunk take effect after the latency."""
        self._pending.append((self.now_ns + self._latency_ns, chunk))

    def advance(self) -> str:
        """Go one step on. Return the outcome, if there is one."""
        while self._pending and self._pending[0][0] <= self.now_ns:
            self._servo.accept(self._pending.popleft()[1])
        output = self._servo.step(self.now_ns)
        self.setpoint = output.setpoint
        self._setpoints.append((output.setpoint.position, output.setpoint.quaternion))
        if output.gripper_width is not None:
            self.gripper = output.gripper_width
        self.now_ns += STEP_NS
        return self._stage.step(*self._setpoints[0], self.gripper)
