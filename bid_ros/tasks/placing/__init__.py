"""Placing: put the held object into a cup that moves."""

from collections.abc import Mapping

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.robots.descriptor import later
from bid_ros.robots.franka.config import OPEN_WIDTH
from bid_ros.sim.twin import Array
from bid_ros.tasks.base import Demonstrator, EpisodeSetup, Style, TaskDescriptor
from bid_ros.tasks.placing.demonstration import ScriptedTeleoperator
from bid_ros.tasks.placing.geometry import OBJECT_DIAMETER
from bid_ros.tasks.placing.score import PlacementScore


def _plan(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    placer = ScriptedTeleoperator(style, seed)
    placer.plan(tool, bodies["cup"], now_ns)
    return placer


# The twin is imported on demand: a system with another task does not need its packages.
TASK = TaskDescriptor(
    name="placing",
    setup=EpisodeSetup(
        open_width=OPEN_WIDTH,
        opened=OPEN_WIDTH - 0.01,
        held=(0.6 * OBJECT_DIAMETER, 1.25 * OBJECT_DIAMETER),
        request="put the object between the fingers",
    ),
    scene=later(f"{__name__}.world:scene_of"),
    bodies=("cup", "object"),
    moves="cup",
    score=PlacementScore,
    stage=later(f"{__name__}.stage:PlacingStage"),
    demonstrator=Demonstrator({"clean": Style(50, 100_000), "diverse": Style(100, 200_000)}, ("cup",), _plan),
)
