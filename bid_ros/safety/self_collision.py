"""Keeps an arm and what its tool carries off one another: distances by Coal over Pinocchio's kinematics.

Source: Pan, Chitta and Manocha, "FCL: a general purpose library for collision and proximity queries", ICRA 2012, whose
successor Coal is; Carpentier et al., "The Pinocchio C++ library", SII 2019.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.link_shapes import capsule
from bid_ros.core.errors import TaskError
from bid_ros.core.extras import extra
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.safety.bound import Bound
from bid_ros.safety.verdict import Verdict, refused

NEIGHBOURS: Final = 1  # joints between two links that always touch


class SelfCollision:
    """Checks how near the parts of an arm and of its tool come to one another, where the joints are known.

    Parts of one link, and of two that one joint connects, are not compared. Nor are pairs that never meet, or are too
    near in the posture ``rest``: the shapes are a little larger than the links. A held object always counts. Between
    two rows the middle is looked at too.

    Args:
        task: its least distance, and the parts of its tool. Without a distance every motion is free.
        arm: its kinematics and the shapes of its links.
    """

    def __init__(self, task: Task, arm: ArmModel) -> None:
        with extra("ros", "limits: min_self_distance", TaskError):
            import pinocchio
        least = task.limits.min_self_distance
        assert least is not None and arm.shapes is not None
        self._least, self._pinocchio = least, pinocchio
        self._model: Any = pinocchio.Model()
        self._geometry: Any = pinocchio.GeometryModel()
        places = [pinocchio.SE3(frame.rotation, frame.position) for frame in arm.chain.frames]
        for number, place in enumerate(places[:-1]):
            self._model.addJoint(number, pinocchio.JointModelRZ(), place, f"joint{number + 1}")
        for shape in arm.shapes():
            self._add(shape.name, shape.joint, pinocchio.SE3(shape.rotation, shape.position), shape.geometry)
        for part in task.tool_shape:
            geometry, middle, turn = capsule(part.begin, part.end or part.begin, part.radius)
            self._add(part.name, arm.joints, places[-1] * pinocchio.SE3(turn, middle), geometry)
        self._data: Any = self._model.createData()
        self._compare_all(np.array(arm.rest), arm.never_meet)

    @classmethod
    def asked(cls, task: Task, arm: ArmModel | None) -> "SelfCollision | None":
        """Return the check that a task asks for; None: it asks for none.

        Raises:
            TaskError: it asks for one, and nobody knows the arm, or its shapes.
        """
        check_known(task, arm)
        return None if task.limits.min_self_distance is None or arm is None else cls(task, arm)

    def bounds(self, joints: Array, first: int = 0) -> Iterator[Bound]:
        """Yield the bound of motions.

        Args:
            joints: ``(N, n, joints)`` rad.
            first: number of the first of these rows in its chunk, for a sentence.
        """
        middles = 0.5 * (joints[:, :-1] + joints[:, 1:])
        looks = np.empty((len(joints), joints.shape[1] + middles.shape[1], joints.shape[2]))
        looks[:, ::2], looks[:, 1::2] = joints, middles
        found = [[self.nearest(look) for look in motion] for motion in looks]
        kept = np.array([all(apart >= self._least for apart, _ in motion) for motion in found])

        def refusal(number: int) -> Verdict:
            motion = found[number]
            look = min(range(len(motion)), key=lambda index: motion[index][0])
            (apart, pair), row = motion[look], first + look // 2
            what = f"{pair} come {1e3 * apart:.1f} mm near each other at action {row}"
            reason = f"{what}; the least is {1e3 * self._least:.1f} mm"
            return refused("self_collision", reason, apart, self._least, row)

        yield Bound(kept, refusal)

    def nearest(self, joints: ArrayLike) -> tuple[float, str]:
        """Return the least distance in m of two parts at joints ``(joints,)`` rad, and which parts; negative: inside.

        NaN at joints that are not finite, which no bound keeps.
        """
        q = np.asarray(joints, dtype=np.float64)
        if not np.isfinite(q).all():
            return float("nan"), "parts"
        pair = self._pinocchio.computeDistances(self._model, self._data, self._geometry, self._distances, q)
        return float(self._distances.distanceResults[pair].min_distance), self._names[pair]

    def _add(self, name: str, joint: int, place: Any, geometry: Any) -> None:
        self._geometry.addGeometryObject(
            self._pinocchio.GeometryObject(f"{name} {self._geometry.ngeoms}", joint, 0, place, geometry)
        )

    def _compare_all(self, rest: Array, never_meet: tuple[tuple[int, int], ...]) -> None:
        """Compare all pairs but neighbours, what never meets, and what is too near at rest."""
        objects = self._geometry.geometryObjects.tolist()
        pairs = [
            (one, other)
            for one, first in enumerate(objects)
            for other, second in enumerate(objects[one + 1 :], one + 1)
            if abs(first.parentJoint - second.parentJoint) > NEIGHBOURS
            and (first.parentJoint, second.parentJoint) not in never_meet
        ]
        self._compare(pairs)
        self.nearest(rest)
        results = self._distances.distanceResults
        self._compare([pair for pair, found in zip(pairs, results, strict=True) if found.min_distance > self._least])

    def _compare(self, pairs: list[tuple[int, int]]) -> None:
        names = [shape.name.rpartition(" ")[0] for shape in self._geometry.geometryObjects]
        self._names = [f"'{names[one]}' and '{names[other]}'" for one, other in pairs]
        self._geometry.removeAllCollisionPairs()
        for pair in pairs:
            self._geometry.addCollisionPair(self._pinocchio.CollisionPair(*pair))
        self._distances: Any = self._geometry.createData()


def check_known(task: Task, arm: ArmModel | None) -> None:
    """Raise TaskError if a task asks for a least distance of an arm whose joints or shapes nobody knows."""
    check_posed(task)
    if task.limits.min_self_distance is None or (arm is not None and arm.shapes is not None):
        return
    what = "joints" if arm is None else "shapes of the links"
    raise TaskError(
        f"limits: min_self_distance is {task.limits.min_self_distance:g} m, but the {what} of robot '{task.robot}' are "
        "not known; valid is a robot whose geometry is known, or no min_self_distance"
    )


def poses(task: Task) -> bool:
    """Whether a task commands poses: a position and a rotation."""
    return task.columns("position") is not None and task.columns("rotation_6d") is not None


def check_posed(task: Task) -> None:
    """Raise TaskError if a task asks for a least distance, but commands neither joints nor position and rotation."""
    if task.limits.min_self_distance is None or task.columns("joints") is not None or poses(task):
        return
    raise TaskError(
        f"limits: min_self_distance is {task.limits.min_self_distance:g} m, but task '{task.name}' commands a position "
        "without rotation_6d, so nobody knows the joints; valid is an action of kind rotation_6d, or no "
        "min_self_distance"
    )
