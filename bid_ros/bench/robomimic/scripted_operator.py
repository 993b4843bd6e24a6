"""How a scripted operator moves: skill, pauses, tremor. Stands in for the people whose demonstrations are published.

What people's demonstrations have and a planner's lack: several ways of doing the same, idle pauses, different speeds
and skill, misses that are mended. All of it is drawn from the operator's own random numbers.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.robomimic.catalogue import RobomimicTask
from bid_ros.bench.robomimic.env import RATE_HZ, ManipulationState
from bid_ros.bench.skill import draw_skill
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d

Array = NDArray[np.float64]
Motion = Iterator[Array]
"""Actions ``(10,)``, one a step."""

# The tool points down and its fingers close along the world's y axis: x, y, z of the grip site as columns.
DOWN: Final = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
OPEN, CLOSED = -1.0, 1.0
SETTLE_S: Final = 0.25  # by which the arm is behind its set-point


class ScriptedOperator:
    """Holds the set-point of the tool and moves it. Its motions are generators of actions.

    Args:
        state: at the start of the episode.
        random: what differs from one operator to another, and within an episode, is drawn from it.
        task: says where the object's place stands in what is observed.

    Attributes:
        state: the newest; whoever takes the actions sets it after each step.
        skill: of this operator.
        random: as given.
    """

    def __init__(self, state: ManipulationState, random: np.random.Generator, task: RobomimicTask) -> None:
        self.state, self.random, self.skill = state, random, draw_skill(random)
        self._at = task.object_at
        self._place = np.array(state.shown["robot0_eef_pos"])
        self._yaw, self._gripper, self._shake = 0.0, OPEN, np.zeros(3)

    @property
    def place(self) -> Array:
        """``(3,)`` where the set-point is, m."""
        return self._place.copy()

    @property
    def yaw(self) -> float:
        """Turn of the set-point about the vertical, rad."""
        return self._yaw

    @property
    def object_place(self) -> Array:
        """``(3,)`` where the object is, m."""
        return np.asarray(self.state.shown["object"][self._at : self._at + 3])

    @property
    def object_heading(self) -> float:
        """Turn about the vertical, rad, of the object's x axis."""
        axis = matrix_from_quaternion(self.state.shown["object"][self._at + 3 : self._at + 7])[:, 0]
        return float(np.arctan2(axis[1], axis[0]))

    @property
    def opening(self) -> float:
        """Distance of the fingers, m."""
        fingers = self.state.shown["robot0_gripper_qpos"]
        return float(fingers[0] - fingers[1])

    def move(self, goal: ArrayLike, yaw: float | None = None, pace: float = 1.0) -> Motion:
        """Move the set-point in a straight line, starting and stopping softly.

        Args:
            goal: ``(3,)`` m.
            yaw: rad at the end; None: as it is.
            pace: factor on the operator's speeds.
        """
        start, first = self._place, self._yaw
        end, last = np.asarray(goal, dtype=np.float64), self._yaw if yaw is None else yaw
        way, turn = float(np.linalg.norm(end - start)), abs(last - first)
        seconds = max(way / self.skill.speed, turn / self.skill.turn_speed) / pace
        steps = max(1, round(1.3 * seconds * RATE_HZ))  # a soft start and stop take longer at the same speed
        for step in range(1, steps + 1):
            share = step / steps
            share = share * share * (3 - 2 * share)
            self._place, self._yaw = start + share * (end - start), first + share * (last - first)
            yield self._action()

    def wait(self, seconds: float) -> Motion:
        """Stay."""
        for _ in range(round(seconds * RATE_HZ)):
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
        cosine, sine = np.cos(self._yaw), np.sin(self._yaw)
        turn = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ DOWN
        return np.concatenate([self._place + self._shake, matrix_to_6d(turn), [self._gripper]])
