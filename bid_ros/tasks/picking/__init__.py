"""Picking: grasp a cup that a string pulls, and put it on a saucer."""

from collections.abc import Mapping, Sequence

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.robots.descriptor import later
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.sim.twin import Array
from bid_ros.tasks.base import Demonstrator, EpisodeSetup, Style, TaskDescriptor
from bid_ros.tasks.picking.demonstration import ScriptedPicker
from bid_ros.tasks.picking.score import PickingScore


def _plan(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    picker = ScriptedPicker(style, seed)
    picker.plan(tool, bodies["cup"], bodies["saucer"], now_ns)
    return picker


def _prepare(style: str, seed: int, bodies: Mapping[str, Array]) -> Sequence[tuple[Array, float]]:
    picker = ScriptedPicker(style, seed)
    recovery = picker.recovery(bodies["cup"][:2], bodies["saucer"][:2])
    if recovery is None:
        return ()
    opened, closed = ((recovery.position, width) for width in (picker.config.open_width, picker.config.closed_width))
    return (opened, closed) if recovery.held else (closed,)


# The twin is imported on demand: a system with another task does not need its packages.
TASK = TaskDescriptor(
    name="picking",
    # The pads of a held cup are 60 mm apart. They open to a little more than 78 mm.
    setup=EpisodeSetup(open_width=MAX_OPENING, opened=0.078, held=None, request="put cup and saucer on the table"),
    scene=later(f"{__name__}.world:scene_of"),
    bodies=("cup", "saucer"),
    moves="cup",
    score=PickingScore,
    stage=later(f"{__name__}.stage:PickingStage"),
    demonstrator=Demonstrator(
        {"clean": Style(50, 100_000), "diverse": Style(100, 200_000), "recover": Style(60, 250_000)},
        ("cup", "saucer"),
        _plan,
        _prepare,
    ),
)
