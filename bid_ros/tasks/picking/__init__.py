"""Picking: grasp a cup that a string pulls, and put it on a saucer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.core.task import Task
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.sim.twin import Array, TwinScene
from bid_ros.tasks.base import Demonstrator, Setup, Stage, Style, TaskDescriptor
from bid_ros.tasks.picking.demonstration import ScriptedPicker
from bid_ros.tasks.picking.score import PickingScore
from bid_ros.tasks.picking.styles import PickingConfig


# Imported on demand: a system with another task does not need the packages of this twin.
def _scene(task: Task) -> TwinScene:
    from bid_ros.tasks.picking.world import SCENE

    return SCENE


def _stage(*arguments: Any) -> Stage:
    from bid_ros.tasks.picking.stage import PickingStage

    return PickingStage(*arguments)


def _plan(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    picker = ScriptedPicker(style, seed)
    picker.plan(tool, bodies["cup"], bodies["saucer"], now_ns)
    return picker


def _prepare(style: str, seed: int, bodies: Mapping[str, Array]) -> Sequence[tuple[Array, float]]:
    config = PickingConfig()
    recovery = ScriptedPicker(style, seed, config).recovery(bodies["cup"][:2], bodies["saucer"][:2])
    if recovery is None:
        return ()
    opened, closed = ((recovery.position, width) for width in (config.open_width, config.closed_width))
    return (opened, closed) if recovery.held else (closed,)


TASK = TaskDescriptor(
    name="picking",
    # The pads of a held cup are 60 mm apart. They open to a little more than 78 mm.
    setup=Setup(open_width=MAX_OPENING, opened=0.078, held=None, request="put cup and saucer on the table"),
    scene=_scene,
    bodies=("cup", "saucer"),
    score=PickingScore,
    stage=_stage,
    demonstrator=Demonstrator(
        {"clean": Style(50, 100_000), "diverse": Style(100, 200_000), "recover": Style(60, 250_000)},
        ("cup", "saucer"),
        _plan,
        _prepare,
    ),
)
