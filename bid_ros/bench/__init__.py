"""The bench: compares decoders in simulation, with many environments in lockstep. A bench can be resumed.

A :class:`Cell` is a decoder with its settings under given disturbances. A :class:`Unit` is a batch of its episodes. The
numbers of an episode depend only on its cell, seed and index, not on its batch or process.
"""

from bid_ros.bench.cell import Cell, make_cell
from bid_ros.bench.grid import PRESETS, Plan, Unit, build_cells
from bid_ros.bench.rollout import Setup
from bid_ros.bench.scene import Scene, pusht_scene
from bid_ros.bench.summary import CellSummary, markdown
from bid_ros.bench.sweep import Crew, run_bench

__all__ = [
    "PRESETS",
    "Cell",
    "CellSummary",
    "Crew",
    "Plan",
    "Scene",
    "Setup",
    "Unit",
    "build_cells",
    "make_cell",
    "markdown",
    "pusht_scene",
    "run_bench",
]
