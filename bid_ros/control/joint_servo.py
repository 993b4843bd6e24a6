"""The servo of joints: turns chunks of joint positions into set-points that always keep the limits."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.follower import kept_inside, no_further_out
from bid_ros.control.joint_follower import (
    Joints,
    brake_joints,
    moved,
    slowed,
    stopping_posture,
    towards,
    wanted_speeds,
)
from bid_ros.control.servo_base import TIME_CONSTANT_S, Servo
from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.control.spatial import Vector
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ArmError, TaskError
from bid_ros.core.rotation import Array, quaternion_from_matrix
from bid_ros.core.task import Task

# Of the tool's acceleration. The rest is for what the tool's way turns while the joints keep their speeds.
TOOL_SHARE: Final = 0.9


@dataclass(frozen=True)
class JointTarget:
    """What a chunk commands at one instant: joints in rad, their speeds in rad/s, gripper opening in m or None."""

    joints: Joints
    speeds: Joints
    gripper_width: float | None


class JointTrack:
    """Samples one chunk: joints linearly, the gripper in steps.

    Args:
        chunk: actions ``(H, D)`` as the task says.
        task: its columns.
    """

    def __init__(self, chunk: ActionChunk, task: Task) -> None:
        columns, gripper = task.columns("joints"), task.columns("gripper")
        self.chunk = chunk
        self._seconds = chunk.dt_ns / NANOSECONDS
        self._rows: list[Joints] = [tuple(row) for row in chunk.actions[:, columns or slice(0, 0)].tolist()]
        self._widths: list[float] = [] if gripper is None else chunk.actions[:, gripper].ravel().tolist()

    def sample(self, now_ns: int) -> JointTarget:
        """Return what the chunk commands at ``now_ns``. Before its first and after its last row it is at rest."""
        place = self.chunk.position_at(now_ns)
        row = int(place)
        width, start = self._widths[row] if self._widths else None, self._rows[row]
        if row + 1 >= len(self._rows):
            return JointTarget(start, (0.0,) * len(start), width)
        rate = 1.0 / self._seconds
        speeds = tuple(rate * (then - now) for now, then in zip(start, self._rows[row + 1], strict=True))
        return JointTarget(moved(start, speeds, (place - row) * self._seconds), speeds, width)


class JointServo(Servo[JointTarget]):
    """Follows chunks that command joints. See :class:`bid_ros.control.servo_base.Servo`.

    Each joint keeps its limits of position, speed and acceleration. The wanted joint speeds also keep the tool's limits
    of speed and turn rate, and change no faster than the tool's limits of acceleration and turn acceleration allow. A
    stop keeps the joints' limits alone: it is the shortest one. The arm can always brake to rest with every joint
    inside its limits and the tool inside the workspace. If it starts outside, it never moves further out.

    Args:
        task: action features and limits.
        arm: kinematics and limits of the joints.
        lookahead_s: as there.

    Raises:
        TaskError: the task does not command the joints of this arm, or more than these and a gripper.
    """

    def __init__(self, task: Task, arm: ArmModel, lookahead_s: float = 0.0) -> None:
        super().__init__(task, lookahead_s)
        columns = task.columns("joints")
        others = [item.kind for item in task.action if item.kind not in ("joints", "gripper")]
        if columns is None or others or columns.stop - columns.start != arm.joints:
            kinds = ", ".join(f"{item.kind} {item.shape}" for item in task.action)
            raise TaskError(
                f"task '{task.name}' commands {kinds}; valid is joints ({arm.joints},), with or without gripper"
            )
        self._task, self._chain = task, arm.chain
        self._limits = arm.limits.within(task.limits)
        self._low: Vector = task.limits.workspace_min
        self._high: Vector = task.limits.workspace_max
        self._joints: Joints = (0.0,) * arm.joints
        self._speeds: Joints = self._joints
        self._place, self._rotation = np.zeros(3), np.eye(3)
        self._jacobian: Array = np.zeros((6, arm.joints))

    def start(self, joints: ArrayLike, now_ns: int) -> None:
        """Begin at rest at measured joints ``(joints,)`` rad. A latched stop remains.

        Raises:
            ArmError: they are of another number, or not finite.
        """
        values = np.asarray(joints, dtype=np.float64)
        if values.shape != (len(self._joints),) or not np.isfinite(values).all():
            raise ArmError(f"the servo starts at {values.tolist()}; valid are {len(self._joints)} finite joints")
        self._joints = tuple(values.tolist())
        self._speeds = (0.0,) * len(self._joints)
        self._last_ns = now_ns
        self._look()
        self.release()

    def _prepared(self, chunk: ActionChunk) -> JointTrack:
        return JointTrack(chunk, self._task)

    def _kept(self, target: JointTarget) -> JointTarget:
        """Return the target with each joint inside its limits, at rest where it was moved."""
        kept, speeds = kept_inside(target.joints, target.speeds, self._limits.low, self._limits.high)
        return replace(target, joints=tuple(kept), speeds=tuple(speeds))

    def _rested(self, target: JointTarget) -> JointTarget:
        return replace(target, speeds=(0.0,) * len(target.speeds))

    def _advance(self, dt: float) -> None:
        self._speeds = self._next_speeds(self._target, dt)
        if not self._resting():
            self._joints = moved(self._joints, self._speeds, dt)
            self._look()

    def _next_speeds(self, target: JointTarget | None, dt: float) -> Joints:
        """Return the next speeds. Braking is always possible: the step before kept the stopping posture inside."""
        limits = self._limits
        if target is not None:
            error = tuple(then - now for then, now in zip(target.joints, self._joints, strict=True))
            wanted = wanted_speeds(error, target.speeds, limits.speed, limits.acceleration, TIME_CONSTANT_S, dt)
            speeds = towards(self._speeds, self._kept_by_tool(wanted), limits.acceleration, dt)
            speeds = self._changed_by_tool(speeds, dt)
            if self._may_reach(stopping_posture(moved(self._joints, speeds, dt), speeds, limits.acceleration)):
                return speeds
        return brake_joints(self._speeds, limits.acceleration, dt)

    def _kept_by_tool(self, speeds: Joints) -> Joints:
        """Return the speeds, all slowed down alike until the tool keeps its limits of speed and turn rate."""
        limits = self._task.limits
        return slowed(speeds, self._share(np.array(speeds), limits.max_speed, limits.max_turn_rate))

    def _changed_by_tool(self, speeds: Joints, dt: float) -> Joints:
        """Return speeds on the way to these at which the tool keeps its limits of acceleration."""
        change = np.array(speeds) - self._speeds
        limits, most = self._task.limits, TOOL_SHARE * dt
        share = self._share(change, most * limits.max_acceleration, most * limits.max_turn_acceleration)
        return speeds if share >= 1.0 else tuple((self._speeds + share * change).tolist())

    def _share(self, rates: Array, linear: float, angular: float) -> float:
        """Return the share of ``(joints,)`` rad/s at which the tool keeps a speed, m/s, and a turn rate, rad/s."""
        twist = self._jacobian @ rates
        moves, turns = float(np.linalg.norm(twist[:3])), float(np.linalg.norm(twist[3:]))
        return min(linear / max(moves, 1e-9), angular / max(turns, 1e-9))

    def _may_reach(self, posture: Joints) -> bool:
        """Whether the arm may stop there: inside all limits, or nowhere further outside than it is now."""
        if not no_further_out(posture, self._limits.low, self._limits.high, self._joints):
            return False
        if posture == self._joints:
            return True
        place = self._chain.forward(np.array(posture))[0].tolist()
        return no_further_out(place, self._low, self._high, self._place.tolist())

    def _resting(self) -> bool:
        return not any(self._speeds)

    def _look(self) -> None:
        """Note where the joints put the tool, and how it moves with them."""
        self._place, self._rotation, self._jacobian = self._chain.motion(np.array(self._joints))

    def _setpoint(self) -> tuple[Setpoint, JointSetpoint | None]:
        speeds = np.array(self._speeds)
        twist = self._jacobian @ speeds
        tool = Setpoint(self._place.copy(), quaternion_from_matrix(self._rotation), twist[:3], twist[3:])
        return tool, JointSetpoint(np.array(self._joints), speeds)
