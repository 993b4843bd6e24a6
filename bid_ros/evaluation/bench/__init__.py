"""The bench: decoders compared in simulation, many environments in lockstep, results that can be resumed.

A :class:`Cell` is a decoder with its settings under given disturbances; a :class:`Unit` is a batch of its episodes. The
numbers of an episode depend on its cell, seed and index alone, not on what it shares a batch or a process with.
"""

from bid_ros.evaluation.bench.cell import Cell, make_cell
from bid_ros.evaluation.bench.grid import PRESETS, Plan, Unit, build_cells
from bid_ros.evaluation.bench.rollout import Setup
from bid_ros.evaluation.bench.scene import Scene, pusht_scene
from bid_ros.evaluation.bench.summary import CellSummary, markdown
from bid_ros.evaluation.bench.sweep import Crew, run_bench

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
