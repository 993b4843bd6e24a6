"""A recorded motion as a device: the arm goes to where it began, then follows it, slowed down."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final
from zipfile import BadZipFile

import numpy as np
from pydantic import Field

from bid_ros.control.homing import HomingPlan
from bid_ros.control.slowing import rows_between
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import Array
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import DeviceDescriptor, EpisodeStart, TeleopDevice

RAMP_S: Final = 0.5  # for which the motion comes up to its speed, and for which it comes to rest
REST_S: Final = 1.0  # at the end, before the episode is over
SLOWEST: Final = 0.05


@settings
class RetraceSettings:
    """Settings of a recorded motion.

    Attributes:
        motion: file of the motion, from ``bid retrace``.
        speed: times the recorded speed.
    """

    motion: str
    speed: Annotated[float, Field(ge=SLOWEST, le=1.0)] = 0.5


class RetraceDevice(TeleopDevice):
    """Follows a recorded motion: position, rotation and gripper.

    Args:
        task: its limits hold for the approach; the safety node judges the motion as any other.
        options: which motion, and how fast.

    Raises:
        BidError: there is no such motion, or it is of another task.
    """

    def __init__(self, task: Task, options: RetraceSettings) -> None:
        self._task, self._speed = task, options.speed
        self._times, self._rows = read_motion(Path(options.motion), task)
        self._approach: HomingPlan | None = None
        self._sequence = 0
        self._done = False

    @property
    def duration_s(self) -> float:
        """Time that the motion takes, s, without the approach."""
        return float(self._times[-1]) / self._speed + RAMP_S

    def begin(self, start: EpisodeStart) -> None:
        """Plan the way from the present pose to the first of the motion."""
        columns, first = self._columns, self._rows[0]
        self._approach = HomingPlan(
            start.tool,
            start.rotation,
            first[columns["position"]],
            first[columns["rotation_6d"]],
            float(first[columns["gripper"]][0]) if "gripper" in columns else 0.0,
            start.now_ns,
            self._task.limits,
        )
        self._done = False

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next actions: of the approach, then of the motion."""
        if self._approach is None:
            return None
        approach = self._approach.chunk_at(now_ns, steps, dt_ns).of(self._task)
        since = (now_ns - self._approach.start_ns + np.arange(steps) * dt_ns) / NANOSECONDS - self._approach.duration
        motion = self._at(since)
        self._done = bool(since[0] > self.duration_s + REST_S)
        self._sequence += 1
        actions = np.where((since < 0)[:, np.newaxis], approach.actions, motion)
        return replace(
            approach, actions=actions, source="teleop", sequence=self._sequence, frame_id=self._task.base_frame
        )

    def take_mark(self) -> str:
        """End the episode after the motion. Nobody judges it, so it counts as no demonstration."""
        done, self._done = self._done, False
        return "discard" if done else ""

    def end(self) -> None:
        """Forget the plan."""
        self._approach = None

    @property
    def _columns(self) -> dict[str, slice]:
        return {item.kind: part for item, part in self._task.action_columns}

    def _at(self, since_s: Array) -> Array:
        """Return the rows ``(n, D)`` at times since the begin of the motion, whose speed rises and falls gently."""
        end = self.duration_s
        t = np.clip(since_s, 0.0, end)
        # The integral of a speed that rises over RAMP_S, stays, and falls over RAMP_S.
        risen = np.minimum(t, RAMP_S) ** 2 / (2 * RAMP_S) + np.maximum(t - RAMP_S, 0.0)
        fallen = np.maximum(t - (end - RAMP_S), 0.0) ** 2 / (2 * RAMP_S)
        at = np.clip((risen - fallen) * self._speed, 0.0, self._times[-1])
        before = np.searchsorted(self._times, at, side="right") - 1
        lasts = np.append(np.diff(self._times), 1.0)[before]  # s from each row to the one after it
        return rows_between(self._rows, self._task, before, (at - self._times[before]) / lasts)


def read_motion(path: Path, task: Task) -> tuple[Array, Array]:
    """Return the times ``(T,)`` in s from 0 on, and the actions ``(T, D)``, of a motion's file.

    Raises:
        BidError: it is missing, is no motion, or is of another task.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            times, rows, signature = content["times"], content["actions"], str(content["signature"])
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise BidError(f"motion {path} cannot be read ({error}); valid is a file that bid retrace wrote") from error
    if signature != task.signature():
        raise BidError(f"motion {path} is of another task than {task.name}; valid is one with the same actions")
    good = rows.shape == (len(times), task.action_dim) and len(times) > 1 and np.isfinite(rows).all()
    if not good or times[0] != 0 or not (np.diff(times) > 0).all():
        raise BidError(f"motion {path} has no rising times with finite actions; valid is a file that bid retrace wrote")
    return times, rows


DEVICE = DeviceDescriptor("retrace", RetraceDevice, settings=RetraceSettings)
