"""Placing: put the held object into a cup that moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.core.task import Task
from bid_ros.robots.franka.config import OPEN_WIDTH
from bid_ros.sim.twin import Array, TwinScene
from bid_ros.tasks.base import Demonstrator, Setup, Stage, Style, TaskDescriptor
from bid_ros.tasks.placing.demonstration import ScriptedTeleoperator
from bid_ros.tasks.placing.geometry import OBJECT_DIAMETER
from bid_ros.tasks.placing.score import PlacementScore


# Imported on demand: a system with another task does not need the packages of this twin.
def _scene(task: Task) -> TwinScene:
    from bid_ros.tasks.placing.world import SCENE

    return SCENE


def _stage(*arguments: Any) -> Stage:
    from bid_ros.tasks.placing.stage import PlacingStage

    return PlacingStage(*arguments)


def _plan(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    placer = ScriptedTeleoperator(style, seed)
    placer.plan(tool, bodies["cup"], now_ns)
    return placer


TASK = TaskDescriptor(
    name="placing",
    setup=Setup(
        open_width=OPEN_WIDTH,
        opened=OPEN_WIDTH - 0.01,
        held=(0.6 * OBJECT_DIAMETER, 1.25 * OBJECT_DIAMETER),
        request="put the object between the fingers",
    ),
    scene=_scene,
    bodies=("cup", "object"),
    score=PlacementScore,
    stage=_stage,
    demonstrator=Demonstrator({"clean": Style(50, 100_000), "diverse": Style(100, 200_000)}, ("cup",), _plan),
)
