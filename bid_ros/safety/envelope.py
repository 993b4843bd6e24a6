"""The envelope: checks a whole chunk against every limit of its task before any of it is forwarded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.checks import check_range
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.rotation import matrix_from_6d
from bid_ros.core.task import Task

Array = NDArray[np.float64]
NOT_A_NUMBER: Final = float("nan")
JUDGED: Final = ("position", "rotation_6d", "gripper")


@dataclass(frozen=True)
class Verdict:
    """Whether a whole chunk may be forwarded, and why not.

    Attributes:
        ok: the chunk keeps every limit.
        trigger: short name of the broken limit (``finite``, ``workspace``, ``speed``, ...), empty if ok.
        reason: one sentence with the measured value and the limit, empty if ok.
        measured: the value that broke the limit, in the limit's unit; NaN if there is none.
        limit: the limit; NaN if it is not a number.
    """

    ok: bool
    trigger: str = ""
    reason: str = ""
    measured: float = NOT_A_NUMBER
    limit: float = NOT_A_NUMBER


ACCEPTED: Final = Verdict(True)


def refused(trigger: str, reason: str, measured: float = NOT_A_NUMBER, limit: float = NOT_A_NUMBER) -> Verdict:
    """Return the refusal of a chunk; the arguments are those of :class:`Verdict`."""
    return Verdict(False, trigger, reason, float(measured), float(limit))


@dataclass(frozen=True)
class EnvelopeConfig:
    """Tolerances that the task file does not set.

    Attributes:
        max_horizons: largest number of rows of a chunk, in multiples of the task's horizon; 1 to 16.
        rotation_tolerance: largest deviation of the columns of ``rotation_6d`` from unit length, and of their dot
            product from 0. The output of a network is never exactly a rotation. 0.001 to 0.5.
        gripper_tolerance: m by which a width may lie outside the gripper's range, for the same reason; 0 to 0.02.
    """

    max_horizons: int = 4
    rotation_tolerance: float = 0.2
    gripper_tolerance: float = 0.005

    def __post_init__(self) -> None:
        for name, low, high in (
            ("max_horizons", 1, 16),
            ("rotation_tolerance", 0.001, 0.5),
            ("gripper_tolerance", 0.0, 0.02),
        ):
            check_range("envelope", name, getattr(self, name), low, high, ValueError)


@dataclass(frozen=True)
class _Rows:
    """The rows that can still be executed, by kind: positions (n, 3), six (n, 6), widths (n,); times in s."""

    position: Array
    six: Array | None
    width: Array | None
    index: float
    dt_s: float


class Envelope:
    """Checks chunks against the limits of a task. It keeps no state between two chunks.

    The checks run in this order: finite, shape, frame, time, workspace, speed, acceleration, jerk, rotation, turn_rate,
    turn_acceleration, tilt, gripper, measurement, jump. The first broken limit is reported with its worst value. A row
    has passed when the time of the next row has come. A passed row is not executed any more and only has to be finite.
    The row before *now* still shapes the motion, so it is checked.

    Derivatives are finite differences at the chunk's own ``dt``. It must not exceed the task's, so a coarse grid cannot
    hide a fast motion. A chunk of one row has no derivatives. The arm keeps its limits across chunks itself.

    Args:
        task: action features and limits. Its rotation is that of a tool whose z axis is the approach axis, in a frame
            whose z axis points up.
        config: tolerances.

    Raises:
        TaskError: the task commands a kind that has no limits, the same kind twice, or no position.
    """

    def __init__(self, task: Task, config: EnvelopeConfig | None = None) -> None:
        kinds = [feature.kind for feature in task.action]
        for kind in kinds:
            if kind not in JUDGED or kinds.count(kind) > 1:
                raise TaskError(
                    f"task '{task.name}': the safety envelope cannot judge the actions {kinds}; "
                    f"valid is each of {', '.join(JUDGED)} at most once"
                )
        position = task.columns("position")
        if position is None:
            raise TaskError(f"task '{task.name}': no action has kind 'position', so no workspace can be kept")
        self._position = position
        self._six = task.columns("rotation_6d")
        self._width = task.columns("gripper")
        self._task = task
        self._limits = task.limits
        self._config = config or EnvelopeConfig()
        self._max_rows = self._config.max_horizons * task.horizon
        self._low = np.array(task.limits.workspace_min)
        self._high = np.array(task.limits.workspace_max)

    def check(self, chunk: ActionChunk, now_ns: int, tool_position: ArrayLike | None) -> Verdict:
        """Return the verdict on a whole chunk.

        Args:
            chunk: the chunk to check.
            now_ns: ROS time now.
            tool_position: measured position (3,) of the tool in m, in the task's base frame. None: it is unknown or too
                old. Then the chunk is refused, because the distance that the arm would jump is unknown.
        """
        verdicts = self._verdicts(chunk, now_ns, tool_position)
        return next((verdict for verdict in verdicts if not verdict.ok), ACCEPTED)

    def _verdicts(self, chunk: ActionChunk, now_ns: int, tool_position: ArrayLike | None) -> Iterator[Verdict]:
        """Yield the verdict of each check. One may rely on what those before it accepted."""
        yield self._finite(chunk)
        yield self._shape(chunk)
        yield self._frame(chunk)
        yield self._time(chunk, now_ns)
        rows = self._rows(chunk, now_ns)
        yield self._workspace(rows)
        yield from self._motion(rows)
        yield from self._turning(rows)
        yield self._gripper(rows)
        yield self._jump(rows, tool_position)

    def _finite(self, chunk: ActionChunk) -> Verdict:
        bad = ~np.isfinite(chunk.actions)
        if not bad.any():
            return ACCEPTED
        row, column = (int(index) for index in np.argwhere(bad)[0])
        value = float(chunk.actions[row, column])
        return refused("finite", f"action {row}, column {column} is {value}; valid are finite numbers", value)

    def _shape(self, chunk: ActionChunk) -> Verdict:
        rows, columns = chunk.actions.shape
        if columns != self._task.action_dim:
            reason = f"an action has {columns} values; the task says {self._task.action_dim}"
            return refused("shape", reason, columns, self._task.action_dim)
        if rows > self._max_rows:
            return refused(
                "shape", f"the chunk has {rows} actions; the limit is {self._max_rows}", rows, self._max_rows
            )
        if chunk.dt_ns > self._task.dt_ns:
            dt_s, limit_s = chunk.dt_ns / NANOSECONDS, self._task.dt_ns / NANOSECONDS
            return refused("shape", f"the chunk's dt is {dt_s:.3f} s; the limit is {limit_s:.3f} s", dt_s, limit_s)
        return ACCEPTED

    def _frame(self, chunk: ActionChunk) -> Verdict:
        if chunk.frame_id == self._task.base_frame:
            return ACCEPTED
        return refused("frame", f"the chunk is in frame '{chunk.frame_id}'; the task says '{self._task.base_frame}'")

    def _time(self, chunk: ActionChunk, now_ns: int) -> Verdict:
        age_s = (now_ns - chunk.stamp_ns) / NANOSECONDS
        if age_s > self._limits.max_chunk_age:
            return _over("time", "the chunk's age", age_s, self._limits.max_chunk_age, "s")
        if -age_s > self._limits.max_chunk_lead:
            return _over(
                "time", "the chunk's stamp is ahead of now: its lead", -age_s, self._limits.max_chunk_lead, "s"
            )
        length_s = (chunk.end_ns - chunk.stamp_ns) / NANOSECONDS
        if age_s >= length_s:
            return _over("time", "the chunk is over: its age", age_s, length_s, "s")
        return ACCEPTED

    def _rows(self, chunk: ActionChunk, now_ns: int) -> _Rows:
        at = chunk.position_at(now_ns)
        first = int(at)
        actions = chunk.actions[first:]
        return _Rows(
            position=actions[:, self._position],
            six=None if self._six is None else actions[:, self._six],
            width=None if self._width is None else actions[:, self._width][:, 0],
            index=at - first,
            dt_s=chunk.dt_ns / NANOSECONDS,
        )

    def _workspace(self, rows: _Rows) -> Verdict:
        outside = np.maximum(self._low - rows.position, rows.position - self._high)
        row, axis = divmod(int(outside.argmax()), 3)
        if outside[row, axis] <= 0:
            return ACCEPTED
        value = float(rows.position[row, axis])
        low, high = self._low[axis], self._high[axis]
        reason = f"{'xyz'[axis]} is {value:.3f} m; the workspace is {low:.3f} to {high:.3f} m"
        return refused("workspace", reason, value, low if value < low else high)

    def _motion(self, rows: _Rows) -> Iterator[Verdict]:
        difference = rows.position
        limits = self._limits
        for trigger, limit, unit in (
            ("speed", limits.max_speed, "m/s"),
            ("acceleration", limits.max_acceleration, "m/s^2"),
            ("jerk", limits.max_jerk, "m/s^3"),
        ):
            difference = (difference[1:] - difference[:-1]) / rows.dt_s
            yield _at_most(trigger, trigger, _largest(difference), limit, unit)

    def _turning(self, rows: _Rows) -> Iterator[Verdict]:
        if rows.six is None:
            return
        limits = self._limits
        error = _rotation_error(rows.six)
        yield _at_most("rotation", "distance to a rotation", error, self._config.rotation_tolerance, "")
        matrices = matrix_from_6d(rows.six)
        rates = _turns(matrices) / rows.dt_s
        yield _at_most("turn_rate", "turn rate", _largest(rates), limits.max_turn_rate, "rad/s")
        change = _largest((rates[1:] - rates[:-1]) / rows.dt_s)
        yield _at_most("turn_acceleration", "turn acceleration", change, limits.max_turn_acceleration, "rad/s^2")
        tilt = float(np.arccos(np.clip(-matrices[:, 2, 2].max(), -1.0, 1.0)))
        yield _at_most("tilt", "tilt from straight down", tilt, limits.max_tilt, "rad")

    def _gripper(self, rows: _Rows) -> Verdict:
        if rows.width is None:
            return ACCEPTED
        limits, slack = self._limits, self._config.gripper_tolerance
        for value, limit, broken in (
            (float(rows.width.min()), limits.gripper_min, rows.width.min() < limits.gripper_min - slack),
            (float(rows.width.max()), limits.gripper_max, rows.width.max() > limits.gripper_max + slack),
        ):
            if broken:
                reason = f"gripper width is {value:.4f} m; the range is {limits.gripper_min} to {limits.gripper_max} m"
                return refused("gripper", reason, value, limit)
        return ACCEPTED

    def _jump(self, rows: _Rows, tool_position: ArrayLike | None) -> Verdict:
        if tool_position is None:
            return refused("measurement", "the tool's position is not known, so the jump to the chunk is not either")
        last = len(rows.position) - 1
        action = rows.position[0] + rows.index * (rows.position[min(1, last)] - rows.position[0])
        # A measured position that is huge but finite overflows. The comparison then refuses infinity.
        with np.errstate(over="ignore"):
            distance = float(np.linalg.norm(action - np.asarray(tool_position)))
        return _at_most("jump", "distance from the tool to the action", distance, self._limits.max_jump, "m")


def _at_most(trigger: str, what: str, measured: float, limit: float, unit: str) -> Verdict:
    # Not `>`, which NaN would pass.
    return ACCEPTED if measured <= limit else _over(trigger, what, measured, limit, unit)


def _over(trigger: str, what: str, measured: float, limit: float, unit: str) -> Verdict:
    suffix = f" {unit}" if unit else ""
    reason = f"{what} is {measured:.3f}{suffix}; the limit is {limit:.3f}{suffix}"
    return refused(trigger, reason, measured, limit)


def _largest(vectors: Array) -> float:
    """Largest length of vectors (n, 3); 0 if there are none, NaN if one is NaN."""
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max(initial=0.0)))


def _rotation_error(six: Array) -> float:
    """Largest deviation of the columns in (n, 6) from unit length and from being orthogonal."""
    first, second = six[:, :3], six[:, 3:]
    lengths = np.sqrt(np.einsum("nij,nij->ni", six.reshape(-1, 2, 3), six.reshape(-1, 2, 3)))
    product = np.einsum("ij,ij->i", first, second)
    return float(max(np.abs(lengths - 1.0).max(), np.abs(product).max()))


def _turns(matrices: Array) -> Array:
    """Rotation vectors (n - 1, 3) in rad, base frame, from each matrix (n, 3, 3) to the next; length 0 to pi."""
    relative = matrices[1:] @ matrices[:-1].transpose(0, 2, 1)
    sine = 0.5 * (relative[:, [2, 0, 1], [1, 2, 0]] - relative[:, [1, 2, 0], [2, 0, 1]])
    length = np.sqrt(np.einsum("ij,ij->i", sine, sine))
    cosine = 0.5 * (np.trace(relative, axis1=1, axis2=2) - 1.0)
    angle = np.arctan2(length, cosine)
    # A half turn has no unique axis. Any axis keeps the angle, and the limit is about the angle.
    scale = np.where(length > 1e-9, angle / np.maximum(length, 1e-9), 1.0)
    turns: Array = sine * scale[:, None]
    turns[(length <= 1e-9) & (cosine < 0), 0] = np.pi
    return turns
