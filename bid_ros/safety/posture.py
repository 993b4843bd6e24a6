"""Checks the joints of motions of the tool: predicted from the measured ones, then held against the robot's limits."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.posture import PosturePrediction, PredictedJoints
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.safety.bound import Bound
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.self_collision import SelfCollision, poses
from bid_ros.safety.verdict import Verdict, refused


class PostureEnvelope:
    """Checks the joints that motions of the tool need: reach, singular postures, the robot's limits, in this order.

    Last come the distances between the arm's parts, if the task asks for them.

    Args:
        task: commands a position and a rotation.
        arm: kinematics and limits of its robot.
    """

    def __init__(self, task: Task, arm: ArmModel) -> None:
        self._prediction, self._least = PosturePrediction(arm), task.limits.min_singular_value
        self._apart = SelfCollision.asked(task, arm)
        self._limits, self._joints = JointEnvelope(arm.limits, task.limits, commanded=False), arm.joints

    @classmethod
    def known(cls, task: Task, arm: ArmModel | None) -> "PostureEnvelope | None":
        """Return the envelope of a task that commands poses of an arm that is known, else None."""
        return None if arm is None or not poses(task) else cls(task, arm)

    def unknown(self, measured: ArrayLike | None) -> Iterator[Verdict]:
        """Yield a refusal if the joints are not measured, or are not those of the arm."""
        if measured is None:
            yield refused("measurement", "the joints are not known, so their motion cannot be predicted")
        elif np.shape(measured) != (self._joints,) or not np.isfinite(measured).all():
            what = f"{np.size(measured)} joints are measured"
            yield refused(
                "measurement", f"{what}; valid are {self._joints} numbers, those of the robot", np.size(measured)
            )

    def bounds(
        self,
        pose: tuple[Array | None, Array | None],
        measured: ArrayLike,
        dt_s: float,
        first: int = 0,
        apart: bool = True,
    ) -> Iterator[Bound]:
        """Yield the bounds of motions.

        Args:
            pose: of the tool in the rows of each motion that can still be executed: ``(N, n, 3)`` m, ``(N, n, 3, 3)``.
            measured: ``(joints,)`` rad.
            dt_s: s between two rows.
            first: number of the first of these rows in its chunk, for a sentence.
            apart: False: leave out how near the arm's parts come to one another, which takes longer than all else.
        """
        position, rotation = pose
        assert position is not None and rotation is not None  # both are commanded
        found = self._prediction.of(position, rotation, measured, dt_s, self._least)
        reached: NDArray[np.bool_] = np.asarray(found.reached.all(axis=1))
        yield Bound(reached, lambda number: _out_of_reach(position[number], found, number, first))
        singular = found.singular.min(axis=1)
        yield Bound(np.asarray(singular >= self._least), lambda number: self._singular(found, number, first))
        yield from self._limits.bounds(found.joints, dt_s, first)
        if self._apart is not None and apart:
            yield from self._apart.bounds(found.joints, first)

    def _singular(self, found: PredictedJoints, number: int, first: int) -> Verdict:
        row = int(found.singular[number].argmin())
        value = float(found.singular[number, row])
        what = f"the smallest singular value of the arm's Jacobian is {value:.4f} in action {first + row}"
        return refused("singularity", f"{what}; the least is {self._least:.4f}", value, self._least, first + row)


def _out_of_reach(position: Array, found: PredictedJoints, number: int, first: int) -> Verdict:
    row = int(found.reached[number].argmin())
    x, y, z = position[row].tolist()
    place = f"[{x:.3f}, {y:.3f}, {z:.3f}] m of action {first + row}"
    return refused("reach", f"no joint positions near the measured ones put the tool at {place}", row=first + row)
