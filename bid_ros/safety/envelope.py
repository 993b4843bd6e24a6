"""The envelope: checks a whole chunk against every limit of its task before any of it is forwarded."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array, matrix_from_6d
from bid_ros.core.task import Task
from bid_ros.safety.beginning import Beginning, ToolMotion, between
from bid_ros.safety.bound import Bound, limited, over
from bid_ros.safety.motion import MotionEnvelope
from bid_ros.safety.posture import PostureEnvelope
from bid_ros.safety.self_collision import SelfCollision
from bid_ros.safety.verdict import ACCEPTED, Verdict, refused

JUDGED: Final = ("position", "rotation_6d", "gripper")
JOINTS: Final = ("joints", "gripper")
MAX_HORIZONS: Final = 4  # rows of a chunk, in multiples of the task's horizon
# Of the columns of `rotation_6d` from unit length, and of their dot product from 0: the output of a network is never
# exactly a rotation.
ROTATION_TOLERANCE: Final = 0.2
GRIPPER_TOLERANCE: Final = 0.005  # m by which a width may lie outside the gripper's range, for the same reason


class Envelope:
    """Checks chunks against the limits of a task. It keeps no state between two chunks.

    The checks run in this order: finite, shape, frame, time, workspace, speed, acceleration, jerk, rotation, turn_rate,
    turn_acceleration, tilt, keep_out, gripper, gripper_rate, measurement, jump, turn_jump, chunk_step, chunk_turn. The
    first broken limit is reported with its worst value. A row has passed when the time of the next row has come. A
    passed row is not executed any more and only has to be finite. The row before *now* still shapes the motion, so it
    is checked.

    Derivatives are finite differences at the chunk's own ``dt``. It must not exceed the task's, so a coarse grid cannot
    hide a fast motion. A chunk of one row has no derivatives. The arm keeps its limits across chunks itself.

    Of a task that commands joints, joint_position, joint_speed and joint_acceleration come before workspace, and
    self_collision and joint_jump come before jump. All limits of the tool hold too, where forward kinematics put it.

    Of a task that commands poses of an arm that is known, the joints are predicted from the measured ones. Then reach,
    singularity, joint_position, joint_speed, joint_acceleration and self_collision come before jump. Such a chunk is
    refused while the joints, or the tool's position, are not known.

    Args:
        task: action features and limits. Its rotation is that of a tool whose z axis is the approach axis, in a frame
            whose z axis points up.
        arm: kinematics and limits of the joints. A task that commands joints needs it. Of one that commands poses None
            means that nothing is known of the joints, and they are not judged.

    Raises:
        TaskError: the task commands a kind that has no limits, the same kind twice, or no position and no joints; or
            joints of which nothing is known.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        check_judged(task)
        self._six, self._width = task.columns("rotation_6d"), task.columns("gripper")
        self._motion = MotionEnvelope(task, commanded_arm(task, arm))
        self._apart = None if self._motion.joints is None else SelfCollision.asked(task, arm)
        self._beginning, self._posture = Beginning(task.limits), PostureEnvelope.known(task, arm)
        self._task, self._limits, self._max_rows = task, task.limits, MAX_HORIZONS * task.horizon

    def check(
        self,
        chunk: ActionChunk,
        now_ns: int,
        tool_position: ArrayLike | None,
        joints: ArrayLike | None = None,
        tool_rotation: ArrayLike | None = None,
        before: ActionChunk | None = None,
    ) -> Verdict:
        """Return the verdict on a whole chunk.

        Args:
            chunk: the chunk to check.
            now_ns: ROS time now.
            tool_position: measured position (3,) of the tool in m, in the task's base frame. None: it is unknown or too
                old. Then the chunk is refused, because the distance that the arm would jump is unknown.
            joints: measured joints in rad, of an arm that is known; None as for the tool.
            tool_rotation: measured rotation (3, 3) of the tool, tool to base. None: nobody knows it, and ``turn_jump``
                is not judged. The safety node knows it whenever it knows the position.
            before: the chunk of the same source that was forwarded last, as it was forwarded. None: there is none.
        """
        return next(self.refusals(chunk, now_ns, tool_position, joints, tool_rotation, before), ACCEPTED)

    def refusals(
        self,
        chunk: ActionChunk,
        now_ns: int,
        tool_position: ArrayLike | None,
        measured: ArrayLike | None = None,
        tool_rotation: ArrayLike | None = None,
        before: ActionChunk | None = None,
    ) -> Iterator[Verdict]:
        """Yield a refusal for each broken limit; the arguments are those of :meth:`check`.

        A check may rely on what those before it found in order. So only a refusal by a rule of speed, acceleration or
        jerk, of tool, turning, joints or gripper, may be passed over.
        """
        yield from self._form(chunk)
        yield from self._time(chunk, now_ns)
        at = chunk.position_at(now_ns)
        first, dt_s = int(at), chunk.dt_ns / NANOSECONDS
        rows = chunk.actions[first:]  # that can still be executed
        motion, whole = self._motion, rows[None]
        position, matrices = motion.tool(whole)
        yield from _broken(motion.bounds(whole, position, dt_s, first))
        if self._six is not None:
            error = _rotation_error(rows[:, self._six])
            yield from limited("rotation", "distance to a rotation", error, ROTATION_TOLERANCE, "")
            matrices = matrix_from_6d(whole[..., self._six])
        if matrices is not None:
            yield from _broken(motion.turning(matrices, dt_s, first))
        if position is not None:
            yield from _broken(motion.geometry.bounds(position, matrices, whole, first))
        if self._width is not None:
            yield from self._gripper(rows[:, self._width][:, 0])
            yield from _broken(motion.gripping(whole, dt_s, first))
        if self._posture is not None:
            yield from self._posture.unknown(measured)
            if measured is not None:
                yield from _broken(self._posture.bounds((position, matrices), measured, dt_s, first))
        if self._apart is not None:
            yield from _broken(self._apart.bounds(whole[..., motion.joint_columns], first))
        if motion.joints is not None:
            yield from motion.joints.jump(between(rows[:, motion.joint_columns], at - first), measured)
        if position is None:
            return
        action = ToolMotion.between(position[0, :2], None if matrices is None else matrices[0, :2], at - first)
        yield from self._beginning.jump(action, tool_position, tool_rotation)
        begins_ns = max(now_ns, chunk.stamp_ns)
        earlier = self._commanded(before, begins_ns) if before is not None and before.covers(begins_ns) else None
        if earlier is not None:
            yield from self._beginning.step(action, earlier)

    def _commanded(self, chunk: ActionChunk, at_ns: int) -> ToolMotion | None:
        """Return where a chunk commands the tool at an instant; None: nobody knows."""
        at = chunk.position_at(at_ns)
        rows = chunk.actions[int(at) : int(at) + 2]
        position, matrices = self._motion.pose(rows)
        if position is None:
            return None
        return ToolMotion.between(position, matrices, at - int(at))

    def holds(self, opening: float | None) -> None:
        """Take the measured opening of a gripper at rest, m; None: nobody knows it, or the gripper moves."""
        self._motion.geometry.opening = opening

    def malformed(self, chunk: ActionChunk) -> Verdict | None:
        """Return the refusal of a chunk that is none of this task; None: it is one, at whatever speed."""
        return next(self._form(chunk), None)

    def _form(self, chunk: ActionChunk) -> Iterator[Verdict]:
        """Whether the chunk is one of this task at all."""
        task, (rows, columns) = self._task, chunk.actions.shape
        bad = ~np.isfinite(chunk.actions)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value = float(chunk.actions[row, column])
            yield refused("finite", f"action {row}, column {column} is {value}; valid are finite numbers", value)
        if columns != task.action_dim:
            reason = f"an action has {columns} values; the task says {task.action_dim}"
            yield refused("shape", reason, columns, task.action_dim)
        most = round(self._max_rows / chunk.scale)  # a slower motion takes longer, nothing else does
        if rows > most:
            reason = f"the chunk has {rows} actions; the limit is {most}"
            yield refused("shape", reason, rows, most)
        dt_s, limit_s = chunk.dt_ns / NANOSECONDS, task.dt_ns / NANOSECONDS
        yield from limited("shape", "the chunk's dt", dt_s, limit_s, "s")
        if chunk.frame_id != task.base_frame:
            yield refused("frame", f"the chunk is in frame '{chunk.frame_id}'; the task says '{task.base_frame}'")

    def _time(self, chunk: ActionChunk, now_ns: int) -> Iterator[Verdict]:
        yield from out_of_time(chunk, now_ns, self._limits)
        age_s = (now_ns - chunk.stamp_ns) / NANOSECONDS
        length_s = (chunk.end_ns - chunk.stamp_ns) / NANOSECONDS
        if age_s >= length_s:
            yield over("time", "the chunk is over: its age", age_s, length_s, "s")

    def _gripper(self, width: Array) -> Iterator[Verdict]:
        low, high, slack = self._limits.gripper_min, self._limits.gripper_max, GRIPPER_TOLERANCE
        least, most = float(width.min()), float(width.max())
        for value, limit, broken in ((least, low, least < low - slack), (most, high, most > high + slack)):
            if broken:
                yield refused(
                    "gripper", f"gripper width is {value:.4f} m; the range is {low} to {high} m", value, limit
                )


def out_of_time(chunk: ActionChunk, now_ns: int, limits: Limits, hop_s: float = 0.0) -> Iterator[Verdict]:
    """Yield a refusal of a chunk that is too old, or that begins too far in the future.

    Args:
        chunk: the chunk to check.
        now_ns: ROS time now.
        limits: of its age and its lead.
        hop_s: s by which it may be older, as it was judged before.
    """
    age_s, lead = (now_ns - chunk.stamp_ns) / NANOSECONDS, "the chunk's stamp is ahead of now: its lead"
    yield from limited("time", "the chunk's age", age_s, limits.max_chunk_age + hop_s, "s")
    yield from limited("time", lead, -age_s, limits.max_chunk_lead, "s")


def check_judged(task: Task) -> None:
    """Raise TaskError unless the safety envelope can judge what a task commands: a tool's pose, or joints."""
    kinds = [feature.kind for feature in task.action]
    valid = JOINTS if "joints" in kinds else JUDGED
    for kind in kinds:
        if kind not in valid or kinds.count(kind) > 1:
            raise TaskError(
                f"task '{task.name}': the safety envelope cannot judge the actions {kinds}; "
                f"valid is each of {', '.join(JUDGED)} at most once, or of {', '.join(JOINTS)}"
            )
    if not {"position", "joints"} & set(kinds):
        raise TaskError(f"task '{task.name}': no action has kind 'position' or 'joints', so no workspace can be kept")


def commanded_arm(task: Task, arm: ArmModel | None) -> ArmModel | None:
    """Return the model of the arm whose joints a task commands; None: it commands none.

    Raises:
        TaskError: the model is missing, or has another number of joints.
    """
    columns = task.columns("joints")
    if columns is None:
        return None
    commanded = columns.stop - columns.start
    if arm is None:
        raise TaskError(f"task '{task.name}' commands joints of robot '{task.robot}', whose limits are not known")
    if arm.joints != commanded:
        raise TaskError(
            f"task '{task.name}' commands {commanded} joints; valid are the {arm.joints} of robot '{task.robot}'"
        )
    return arm


def _broken(bounds: Iterable[Bound]) -> Iterator[Verdict]:
    """Yield a refusal for each bound that the only motion breaks."""
    for bound in bounds:
        if not bound.kept[0]:
            yield bound.refusal(0)


def _rotation_error(six: Array) -> float:
    """Largest deviation of the columns in (n, 6) from unit length and from being orthogonal."""
    first, second = six[:, :3], six[:, 3:]
    lengths = np.sqrt(np.einsum("nij,nij->ni", six.reshape(-1, 2, 3), six.reshape(-1, 2, 3)))
    product = np.einsum("ij,ij->i", first, second)
    return float(max(np.abs(lengths - 1.0).max(), np.abs(product).max()))
