"""Success by the rules of a task file, judged from where everything is in the twin."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.objects import SceneObject, SuccessRule
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.core.task import Task
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import PENDING, Score

UPRIGHT: Final = 0.14  # rad by which an upright object may lean
FALLEN: Final = 0.8  # rad of lean from which one that has to be upright has fallen over
STANDS: Final = 0.005  # m by which a foot may be under or over what it stands on
LIFTED: Final = 0.010  # m over the table of an object that is held
GRIPPED: Final = 0.005  # m by which tool and fingers may be beside an object that is between them
BEYOND: Final = 0.05  # m outside of the workspace, where an object is lost


class ObjectScore(Score):
    """Success: all rules of the task hold, each for its time.

    ``dropped`` means: an object of the rules lies out of reach, or one that has to be upright has fallen over and is
    not between the fingers.

    Args:
        task: with objects and rules.
    """

    def __init__(self, task: Task) -> None:
        self._rules, self._items = task.success, {item.name: item for item in task.objects}
        limits = task.limits
        self._low, self._high = (np.array(corner[:2]) for corner in (limits.workspace_min, limits.workspace_max))
        self.moved = next(((rule.object, rule.target) for rule in task.success if rule.target), ())
        super().__init__(hold_s=0.0)

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""
        super().reset()
        self._now_ns, self._true_ns = 0, dict[SuccessRule, int]()

    def update(self, now_ns: int, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge one state, which each rule has to last for its time; as the base class."""
        self._now_ns = now_ns
        return super().update(now_ns, bodies, tool, gripper_width)

    def judge(self, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Return the outcome that a state makes of the states before it."""
        for rule in self._rules:
            if self._holds(rule, bodies, tool, gripper_width):
                self._true_ns.setdefault(rule, self._now_ns)
            else:
                self._true_ns.pop(rule, None)
        if all(
            rule in self._true_ns and self._now_ns - self._true_ns[rule] >= rule.for_s * NANOSECONDS
            for rule in self._rules
        ):
            return "success"
        return "dropped" if any(self._lost(rule, bodies, tool, gripper_width) for rule in self._rules) else PENDING

    def _holds(self, rule: SuccessRule, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> bool:
        item = self._items[rule.object]
        position, rotation = _posed(bodies[rule.object])
        if rule.rule == "upright":
            return _lean(rotation) <= UPRIGHT
        if rule.rule == "released":
            return not _between_fingers(item, position, rotation, tool, gripper_width)
        if rule.rule == "held":
            foot = position[2] - _down(item, rotation)
            return foot >= LIFTED and _between_fingers(item, position, rotation, tool, gripper_width)
        return _within(rule, item, (position, rotation), self._items[rule.target], _posed(bodies[rule.target]))

    def _lost(self, rule: SuccessRule, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> bool:
        item = self._items[rule.object]
        position, rotation = _posed(bodies[rule.object])
        place = position[:2]
        away = bool((place < self._low - BEYOND).any() or (place > self._high + BEYOND).any())
        fallen = rule.rule == "upright" and _lean(rotation) > FALLEN
        return (away or fallen) and not _between_fingers(item, position, rotation, tool, gripper_width)


def _posed(pose: Pose) -> tuple[Array, Array]:
    """Return position ``(3,)`` m and rotation ``(3, 3)`` of a pose."""
    return pose[0], matrix_from_quaternion(pose[1])


def _lean(rotation: Array) -> float:
    """Angle in rad between straight up and the z axis of an object."""
    return math.acos(max(-1.0, min(1.0, float(rotation[2, 2]))))


def _down(item: SceneObject, rotation: Array) -> float:
    """How far an object reaches below its middle, m."""
    return item.reach(rotation[2].tolist())


def _between_fingers(item: SceneObject, position: Array, rotation: Array, tool: Array, gripper_width: float) -> bool:
    """Whether the tool is in the object, and the fingers no farther apart than the object is long anywhere."""
    inner = np.abs(rotation.T @ (tool - position))
    around = math.hypot(*item.size) + GRIPPED
    return bool((inner <= np.array(item.size) / 2 + GRIPPED).all()) and gripper_width <= around


def _within(
    rule: SuccessRule,
    item: SceneObject,
    pose: tuple[Array, Array],
    target: SceneObject,
    around: tuple[Array, Array],
) -> bool:
    """Whether an object is inside or above a target, each at a position ``(3,)`` m and a rotation ``(3, 3)``."""
    (position, rotation), (middle, turned) = pose, around
    aside = turned.T @ (position - middle)
    foot, top = position[2] - _down(item, rotation), middle[2] + _down(target, turned)
    half = np.array(target.size[:2]) / 2
    if rule.rule == "inside" and target.shape == "mark":  # all of it is on the mark, and it stands
        half = half - [item.reach((rotation.T @ turned[:, axis]).tolist()) for axis in (0, 1)]
        return bool((np.abs(aside[:2]) <= half).all()) and foot <= STANDS
    over = np.abs(aside[:2]) / half
    beside = math.hypot(*over) if target.shape in ("cylinder", "sphere") else float(over.max())
    low = foot < top - STANDS and foot >= middle[2] - _down(target, turned) - STANDS
    return beside <= 1.0 and (low if rule.rule == "inside" else foot >= top - STANDS)
