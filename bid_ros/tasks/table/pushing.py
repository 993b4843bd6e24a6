"""The scripted teleoperator of a task file: pushes an object over the table onto a mark, with closed fingers."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.control.trajectory import MotionLimits, Move, Trajectory, turn_to
from bid_ros.core.errors import BidError
from bid_ros.core.objects import SceneObject, SuccessRule
from bid_ros.core.rotation import DOWN_6D, matrix_from_6d, matrix_from_vector, matrix_to_6d
from bid_ros.core.task import Task
from bid_ros.sim.twin import Array
from bid_ros.tasks.base import Demonstrator, Style
from bid_ros.tasks.table.layout import object_layout, radius_of

STYLE: Final = "push"
FINGERS: Final = 0.011  # m from the tool's axis to the face that pushes
BEHIND: Final = 0.025  # m between fingers and object before the push
OVER: Final = 0.05  # m of the tool over the highest object on the way there
FLOOR: Final = 0.005  # m of the tool over the floor of the workspace, at least, while it pushes
PUSHED_AT: Final = 0.6  # share of the object's height: the hand stays over most objects, and they do not tip
INSIDE: Final = 0.02  # m from the edge of a mark on which the object has room, however it is turned on its way
BACK: Final = 0.05  # m back from the object after the push
FREE, DOWN, PUSH = (MotionLimits(speed, 0.5, 5.0) for speed in (0.18, 0.12, 0.08))
TURN: Final = MotionLimits(0.8, 2.0, 20.0)  # rad
REST_S: Final = 0.7  # after the push, beside the longest time of a rule


class Pusher(PlannedTeleoperator):
    """Goes over the table behind an object, down, pushes it straight to the nearest place on a mark, and goes back.

    The phases are ``approach``, ``descend``, ``push``, ``retreat`` and ``hold``.

    Args:
        task: of which it takes sizes and limits.
        rule: which object belongs on which mark.
    """

    def __init__(self, task: Task, rule: SuccessRule) -> None:
        super().__init__()
        self._task, self._rule = task, rule
        self._items = {item.name: item for item in task.objects}

    def plan(self, tool: Array, bodies: Mapping[str, Array], now_ns: int, angles: Mapping[str, float]) -> None:
        """Plan a demonstration that begins at ``now_ns``.

        Args:
            tool: ``(3,)`` m, base frame.
            bodies: positions ``(3,)`` m, base frame, of object and mark.
            now_ns: ROS time.
            angles: by which object and mark are turned, rad.

        Raises:
            BidError: the tool would leave the workspace.
        """
        item, mark, limits = self._items[self._rule.object], self._items[self._rule.target], self._task.limits
        at, middle = bodies[item.name][:2], bodies[mark.name][:2]
        own, around = (_turned(angles[name]) for name in (item.name, mark.name))
        inner = np.maximum(np.array(mark.size[:2]) / 2 - radius_of(item) - INSIDE, 0.0)
        goal = middle + around @ np.clip(around.T @ (at - middle), np.negative(inner), inner)
        way = goal - at
        length = float(np.linalg.norm(way))
        ahead = way / length if length > 1e-3 else np.array([1.0, 0.0])
        seen = own.T @ ahead  # in the object's own axes
        apart, touched = FINGERS + item.reach([*seen, 0.0]), FINGERS + _surface(item, seen)
        low = max(limits.workspace_min[2] + FLOOR, PUSHED_AT * item.height)
        high = max(float(tool[2]), low + OVER + max(thing.height for thing in self._task.objects))
        behind, end = at - (apart + BEHIND) * ahead, goal - touched * ahead
        points = [np.append(behind, high), np.append(behind, low), np.append(end, low)]
        back = end - BACK * ahead
        self._check([*points, np.append(back, low)])
        turned = _across(math.atan2(ahead[1], ahead[0]))
        approach = Move([tool, points[0]], FREE)
        turns = turn_to(DOWN_6D, turned, TURN)
        descend = Move(points[:2], DOWN, max([approach.end_s, *(turn.end_s for turn in turns)]))
        push = Move(points[1:], PUSH, descend.end_s)
        retreat = Move([points[2], np.append(back, low)], FREE, push.end_s)
        rise = Move([np.append(back, low), np.append(back, high)], FREE, retreat.end_s)
        end_s = rise.end_s + REST_S + max(rule.for_s for rule in self._task.success)
        moves, closed = (approach, descend, push, retreat, rise), ((0.0, limits.gripper_min),)
        path = Trajectory(tool, np.array(DOWN_6D), moves, turns, closed, end_s)
        names = ("approach", "descend", "push", "retreat")
        phases = [(move.begin_s, name) for move, name in zip(moves, names, strict=False)]
        self._follow(path, [*phases, (rise.end_s, "hold")], now_ns, self._task.base_frame)

    def _check(self, points: list[Array]) -> None:
        low, high = self._task.limits.workspace_min, self._task.limits.workspace_max
        for point in points:
            if not ((point >= low).all() and (point <= high).all()):
                what = f"to push '{self._rule.object}' the tool has to go to {np.round(point, 3).tolist()} m"
                raise BidError(f"{what}; valid is inside the workspace, {list(low)} to {list(high)} m")


def _across(angle: float) -> Array:
    """Return the rotation_6d ``(6,)`` of a tool that points down, its fingers side by side across a direction in rad.

    Either finger may be on the left: the smaller turn is taken.
    """
    turned = (angle + math.pi / 2) % math.pi - math.pi / 2
    return matrix_to_6d(matrix_from_vector(np.array([0.0, 0.0, turned])) @ matrix_from_6d(DOWN_6D))


def _turned(angle: float) -> Array:
    """Return the rotation ``(2, 2)`` of an angle in rad."""
    return matrix_from_vector(np.array([0.0, 0.0, angle]))[:2, :2]


def _surface(item: SceneObject, direction: Array) -> float:
    """How far from its middle a line in a direction ``(2,)``, in its own axes, leaves it, m. Of a turned bar that is
    much less than how far the bar reaches.
    """
    if item.shape in ("cylinder", "sphere"):
        return item.size[0] / 2
    return float((np.array(item.size[:2]) / 2 / np.maximum(np.abs(direction), 1e-9)).min())


def push_demonstrator(task: Task) -> Demonstrator | None:
    """Return how a script demonstrates a task that asks for an object on a mark; None if it does not."""
    items = {item.name: item for item in task.objects}
    for rule in task.success:
        if rule.target and items[rule.target].shape == "mark" and items[rule.object].moved_by == "robot":
            return Demonstrator({STYLE: Style(50, 100_000)}, (rule.object, rule.target), partial(_plan, task, rule))
    return None


def _plan(
    task: Task, rule: SuccessRule, style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int
) -> Pusher:
    if style != STYLE:
        raise BidError(f"demonstration style is '{style}'; valid is {STYLE}")
    pusher = Pusher(task, rule)
    poses = object_layout(task.objects, seed).poses  # what a demonstrator is told has no turns
    pusher.plan(tool, bodies, now_ns, {name: turn for name, (_, turn) in poses.items()})
    return pusher
