"""A kind of task: bring the tool to a ball, which is somewhere else in every episode."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.control.trajectory import MotionLimits, Move, Trajectory
from bid_ros.core.rotation import DOWN_6D
from bid_ros.core.task import Task
from bid_ros.sim.mjcf import NO_BITS, geom
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import PENDING, Demonstrator, Score, Style, TaskDescriptor
from bid_ros.tasks.table.scene import EmptyWorld, TableScene

LOW, HIGH = (0.42, -0.10, 0.10), (0.50, 0.10, 0.14)  # m, base frame: where the ball may be
NEAR = 0.02  # m between tool and ball
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class BallTruth:
    """Where the ball is."""

    bodies: Mapping[str, Pose]


class BallWorld(EmptyWorld):
    """A ball that stays where it is put."""

    def __init__(self, model: Any, data: Any) -> None:
        self._data, self._row = data, int(model.body("ball").mocapid[0])

    def lay_out(self, layout: Array) -> None:
        """Put the ball ``(3,)`` m, base frame."""
        self._data.mocap_pos[self._row] = layout

    def ground_truth(self, stamp_ns: int) -> BallTruth:
        """Return where the ball is."""
        return BallTruth({"ball": (self._data.mocap_pos[self._row].copy(), UPRIGHT)})


class BallScene(TableScene):
    """The empty table, and a ball over it."""

    bodies = ("ball",)

    def furnish(self, scene: ET.Element, hand: ET.Element) -> None:
        """Add table, cameras and ball to the robot's MJCF."""
        super().furnish(scene, hand)
        worldbody = scene.find("worldbody")
        assert worldbody is not None
        ball = ET.SubElement(worldbody, "body", name="ball", mocap="true", pos="0.46 0 0.12")
        geom(ball, "sphere", size="0.015", rgba="0.9 0.2 0.15 1", **NO_BITS)

    def layout(self, seed: int, speed: float) -> Array:
        """Return where the ball is in the episode of a seed."""
        super().layout(seed, speed)  # refuses a speed: nothing moves here
        return np.random.default_rng([seed, 3]).uniform(LOW, HIGH)

    def world(self, model: Any, data: Any) -> BallWorld:
        """Return what happens in a compiled model of this scene."""
        return BallWorld(model, data)


class TouchScore(Score):
    """The tool has to stay near the ball for half a second."""

    def __init__(self) -> None:
        super().__init__(hold_s=0.5)

    def judge(self, bodies: Mapping[str, Pose], tool: Array, gripper_width: float) -> str:
        """Judge one state."""
        return "success" if np.linalg.norm(tool - bodies["ball"][0]) < NEAR else PENDING

    def progress(self, bodies: Mapping[str, Pose]) -> str:
        """Return nothing: what there is to say, the picture shows."""
        return ""


class Toucher(PlannedTeleoperator):
    """A script that demonstrates the task: straight to the ball, and wait there."""

    def plan(self, tool: Array, ball: Array, now_ns: int) -> None:
        """Plan from where the tool is to the ball, ``(3,)`` m each, base frame."""
        move = Move([tool, ball], MotionLimits(speed=0.1, acceleration=0.5, jerk=5.0))
        path = Trajectory(tool, np.array(DOWN_6D), (move,), (), ((0.0, 0.08),), duration_s=move.end_s + 2.0)
        self._follow(path, [(0.0, "go")], now_ns, "base")


def _plan(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> Toucher:
    toucher = Toucher()
    toucher.plan(tool, bodies["ball"], now_ns)
    return toucher


def _scene(task: Task) -> BallScene:
    limits = task.limits
    return BallScene([camera.name for camera in task.cameras], limits.workspace_min, limits.workspace_max)


TASK = TaskDescriptor(
    name="touching",
    scene=_scene,
    bodies=("ball",),
    score=TouchScore,
    demonstrator=Demonstrator({"straight": Style(count=20, first_seed=0)}, ("ball",), _plan),
)
