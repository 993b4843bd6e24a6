"""The first motions of an arm as a device: gripper alone, 2 cm along each axis, the start of an episode, a round."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from bid_ros.control.homing import LINEAR, HomingPlan
from bid_ros.control.trajectory import Array, ChunkSource, MotionLimits, Move, Trajectory
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.rotation import DOWN_6D
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import DeviceDescriptor, EpisodeStart, TeleopDevice

STEP: Final = 0.02  # m along each axis
ROUND: Final = ((0.0, 0.06, 0.0), (0.0, 0.06, 0.04), (0.0, -0.06, 0.04), (0.0, -0.06, 0.0), (0.0, 0.0, 0.0))  # m
CAREFUL: Final = 0.2  # of the speed of homing, for the way to the start
STEPPING: Final = 0.4  # of it for the steps: 2 cm at up to 32 mm/s, below which a lag cannot be told
GRIPPING_S: Final = 4.0  # for the gripper to open or to close; the first time it may have to be activated before
REST_S: Final = 0.5
INSIDE: Final = 0.005  # m that the tool stays inside the workspace


@settings
class StageSettings:
    """Settings of a first motion.

    Attributes:
        motion: what moves.
        speed: factor of the speed of homing, for a round.
    """

    motion: Literal["gripper", "axes", "home", "round"] = "axes"
    speed: Annotated[float, Field(ge=0.05, le=1.0)] = CAREFUL


class StageDevice(TeleopDevice):
    """Makes one first motion from where the arm is, and ends the episode.

    Args:
        task: its limits, and the box of starts.
        options: which motion.
    """

    def __init__(self, task: Task, options: StageSettings) -> None:
        self._task, self._options = task, options
        self._source: ChunkSource | None = None
        self._end_ns = 0
        self._done = False

    def begin(self, start: EpisodeStart) -> None:
        """Plan the motion from the present pose."""
        limits, opened = self._task.limits, self._task.limits.gripper_max
        if self._options.motion == "home":
            # Not the plan itself: its chunks are those of the episode's preparation.
            plan = HomingPlan(
                start.tool, start.rotation, start_of(self._task), DOWN_6D, opened, start.now_ns, limits, CAREFUL
            )
            trajectory = plan.trajectory
        elif self._options.motion == "gripper":
            widths = tuple(
                (turn * GRIPPING_S, width) for turn, width in enumerate((opened, limits.gripper_min, opened))
            )
            trajectory = Trajectory(start.tool, start.rotation, (), (), widths, 3 * GRIPPING_S)
        else:
            moves = self._moves(start.tool)
            trajectory = Trajectory(start.tool, start.rotation, moves, (), ((0.0, opened),), moves[-1].end_s)
        self._source = ChunkSource(trajectory, start.now_ns, "teleop", self._task.base_frame)
        self._end_ns = start.now_ns + round((trajectory.duration_s + REST_S) * NANOSECONDS)
        self._done = False

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next actions; the tool rests at the end of the motion."""
        if self._source is None:
            return None
        self._done = self._done or now_ns > self._end_ns
        return self._source.chunk_at(now_ns, steps, dt_ns)

    def take_mark(self) -> str:
        """End the episode after the motion."""
        done, self._done = self._done and self._source is not None, False
        return "success" if done else ""

    def end(self) -> None:
        """Forget the plan."""
        self._source = None

    def _moves(self, tool: Array) -> tuple[Move, ...]:
        limits = self._task.limits
        low, high = np.array(limits.workspace_min) + INSIDE, np.array(limits.workspace_max) - INSIDE
        if self._options.motion == "axes":
            steps = STEP * np.eye(3)
            way = [place for step in steps for place in (tool + _inside(tool, step, low, high), tool)]
            speed = LINEAR.at(STEPPING)
        else:
            way = [np.clip(tool + np.array(corner), np.minimum(low, tool), np.maximum(high, tool)) for corner in ROUND]
            speed = LINEAR.at(self._options.speed)
        return _through(tool, way, speed)


def start_of(task: Task) -> Array:
    """Return the middle ``(3,)`` m of the box of a task's starts, or of its workspace."""
    limits = task.limits
    box = (limits.workspace_min, limits.workspace_max)
    if task.start is not None:
        box = (task.start.tool_min, task.start.tool_max)
    middle: Array = np.mean(box, axis=0)
    return middle


def _inside(tool: Array, step: Array, low: Array, high: Array) -> Array:
    """Return the step, or the one back where it would leave the workspace."""
    leaves = ((tool + step > high) & (step != 0)).any() and (tool - step >= low)[step != 0].all()
    return -step if leaves else step


def _through(tool: Array, way: Sequence[Array], speed: MotionLimits) -> tuple[Move, ...]:
    moves: list[Move] = []
    at = tool
    for place in way:
        moves.append(Move([at, place], speed, moves[-1].end_s if moves else 0.0))
        at = place
    return tuple(moves)


DEVICE = DeviceDescriptor("stage", StageDevice, settings=StageSettings, prepared=False)
