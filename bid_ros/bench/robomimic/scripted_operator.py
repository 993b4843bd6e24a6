"""How a scripted operator moves: skill, pauses, tremor. Stands in for the people whose demonstrations are published.

What people's demonstrations have and a planner's lack: several ways of doing the same, idle pauses, different speeds
and skill, misses that are mended. All of it is drawn from the operator's own random numbers.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.robomimic.catalogue import POSE, RobomimicTask
from bid_ros.bench.robomimic.env import POSITION, RATE_HZ, ROTATION, ManipulationState
from bid_ros.bench.skill import draw_skill
from bid_ros.core.rotation import (
    matrix_from_6d,
    matrix_from_quaternion,
    matrix_from_vector,
    matrix_to_6d,
    vector_from_matrix,
)

Array = NDArray[np.float64]
Motion = Iterator[Array]
"""Actions ``(10,)``, one a step."""

# Of an arm that looks along the world's x axis: the tool points down and its fingers close along the world's y axis.
# x, y, z of the grip site as columns.
DOWN: Final = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
OPEN, CLOSED = -1.0, 1.0
SETTLE_S: Final = 0.25  # by which the arm is behind its set-point


def about_vertical(yaw: float) -> Array:
    """Return the rotation ``(3, 3)`` by ``yaw``, rad, about the world's z axis."""
    cosine, sine = np.cos(yaw), np.sin(yaw)
    return np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])


class ScriptedOperator:
    """Holds the set-point of the tool and moves it. Its motions are generators of actions.

    Args:
        state: at the start of the episode.
        random: what differs from one operator to another, and within an episode, is drawn from it.
        task: says where the objects stand in what is observed, and where the arms look.
        arm: number of the operator's arm.
        practice: least level of skill, see :func:`draw_skill`.

    Attributes:
        state: the newest; whoever takes the actions sets it after each step.
        skill: of this operator.
        random: as given.
        arm: as given.
        facing: where the arm looks, rad about the vertical.
    """

    def __init__(
        self,
        state: ManipulationState,
        random: np.random.Generator,
        task: RobomimicTask,
        arm: int = 0,
        practice: float = 0.0,
    ) -> None:
        self.state, self.random, self.skill = state, random, draw_skill(random, practice)
        self.facing, self.arm = float(np.deg2rad(task.facing[arm])), arm
        self._at = {item.name: item.place_at for item in task.objects}
        self._only = task.objects[0].name
        self._place = np.array(state.shown[f"robot{arm}_eef_pos"])
        self._yaw, self._lean, self._gripper, self._shake = 0.0, DOWN, OPEN, np.zeros(3)

    @property
    def place(self) -> Array:
        """``(3,)`` where the set-point is, m."""
        return self._place.copy()

    @property
    def yaw(self) -> float:
        """Turn of the set-point about the vertical, rad, from where the arm looks."""
        return self._yaw

    @property
    def turn(self) -> Array:
        """``(3, 3)`` rotation of the set-point in the world."""
        turn: Array = about_vertical(self.facing + self._yaw) @ self._lean
        return turn

    @property
    def tool_pose(self) -> tuple[Array, Array]:
        """``(3,)`` and ``(3, 3)``: where the tool is, m, which follows the set-point, and its rotation."""
        pose = self.state.agent[POSE * self.arm :][:POSE]
        return np.asarray(pose[POSITION]), matrix_from_6d(pose[ROTATION])

    def object_pose(self, name: str) -> tuple[Array, Array]:
        """Return ``(3,)`` and ``(3, 3)``: where one of the task's objects is, m, and its rotation."""
        at = self._at[name]
        values = self.state.shown["object"][at : at + 7]
        return np.asarray(values[:3]), matrix_from_quaternion(values[3:])

    @property
    def object_place(self) -> Array:
        """``(3,)`` where the object is, m; of a task with several, the first."""
        return self.object_pose(self._only)[0]

    @property
    def object_heading(self) -> float:
        """Turn about the vertical, rad, of the object's x axis."""
        axis = self.object_pose(self._only)[1][:, 0]
        return float(np.arctan2(axis[1], axis[0]))

    @property
    def opening(self) -> float:
        """Distance of the fingers, m."""
        fingers = self.state.shown[f"robot{self.arm}_gripper_qpos"]
        return float(fingers[0] - fingers[1])

    def move(
        self, goal: ArrayLike, yaw: float | None = None, pace: float = 1.0, lean: ArrayLike | None = None
    ) -> Motion:
        """Move the set-point in a straight line, starting and stopping softly.

        Args:
            goal: ``(3,)`` m.
            yaw: rad at the end, from where the arm looks; None: as it is.
            pace: factor on the operator's speeds.
            lean: ``(3, 3)`` rotation of the tool at the end, before its turn by ``yaw``; None: as it is. It is
                :data:`DOWN` at first.
        """
        start, first, upright = self._place, self._yaw, self._lean
        end, last = np.asarray(goal, dtype=np.float64), self._yaw if yaw is None else yaw
        tilt = None if lean is None else vector_from_matrix(np.asarray(lean) @ upright.T)
        turn = abs(last - first) + (0.0 if tilt is None else float(np.linalg.norm(tilt)))
        way = float(np.linalg.norm(end - start))
        seconds = max(way / self.skill.speed, turn / self.skill.turn_speed) / pace
        steps = max(1, round(1.3 * seconds * RATE_HZ))  # a soft start and stop take longer at the same speed
        for step in range(1, steps + 1):
            share = step / steps
            share = share * share * (3 - 2 * share)
            self._place, self._yaw = start + share * (end - start), first + share * (last - first)
            if tilt is not None:
                self._lean = matrix_from_vector(share * tilt) @ upright
            yield self._action()

    def wait(self, seconds: float) -> Motion:
        """Stay."""
        for _ in range(round(seconds * RATE_HZ)):
            yield self._action()

    def arrive(self, off: float, longest: float = 1.5) -> Motion:
        """Stay until the tool, which follows the set-point, is at most ``off`` m from it, or for ``longest`` s."""
        for _ in range(round(longest * RATE_HZ)):
            if np.linalg.norm(self.tool_pose[0] - self._place) <= off:
                return
            yield self._action()

    def hesitate(self) -> Motion:
        """Pause, or not."""
        if self.random.uniform() < self.skill.pause:
            yield from self.wait(self.random.uniform(0.1, self.skill.longest_pause))

    def grip(self, gripper: float, seconds: float) -> Motion:
        """Open or close the fingers, and stay for ``seconds``."""
        self._gripper = gripper
        yield from self.wait(seconds)

    def _action(self) -> Array:
        # Correlated over a third of a second, as a hand shakes.
        self._shake = 0.85 * self._shake + self.random.normal(0.0, 0.53 * self.skill.tremor, 3)
        return np.concatenate([self._place + self._shake, matrix_to_6d(self.turn), [self._gripper]])
