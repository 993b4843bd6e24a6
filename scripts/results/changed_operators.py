"""Demonstrations of scripted operators that differ from the usual ones in one thing, to find what causes a result.

Usage: changed-operators CHANGE TASK OUT [--count N], of a task with scripted operators (``bid bench demos``). Run
again, it goes on. Train and bench OUT as usual.

no-pauses   The operator never pauses. Does a policy stand still because its demonstrators did?
one-order   Only the kitchen: the same four goals in the same order each time, those of the public data's
            "complete" demonstrations. Does BID gain because the demonstrations have several orders?
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

import bid_ros.bench.kitchen.demonstrating as kitchen_goals
import bid_ros.bench.kitchen.scripted_operator as kitchen
import bid_ros.bench.robomimic.scripted_operator as robomimic
from bid_ros.bench.demonstrating import record
from bid_ros.bench.kitchen.catalogue import KITCHEN
from bid_ros.bench.operators import OPERATORS
from bid_ros.bench.skill import Skill, draw_skill
from bid_ros.cli import main as bid
from bid_ros.commands import bench_demos
from bid_ros.core.errors import BidError

DRAW_GOALS: Final = kitchen_goals.draw_goals
COMPLETE: Final = ("microwave", "kettle", "light switch", "slide cabinet")


def tireless(random: np.random.Generator) -> Skill:
    """Draw an operator who never pauses."""
    return replace(draw_skill(random), pause=0.0)


def in_one_order(random: np.random.Generator) -> tuple[str, ...]:
    """Return the goals of each demonstration; draw what is usually drawn, so that the rest of the operator stays."""
    DRAW_GOALS(random)
    return COMPLETE


def without_pauses(task: str) -> None:
    """Let the operators of all tasks go on without a pause."""
    for operator in (kitchen, robomimic):
        operator.draw_skill = tireless  # type: ignore[attr-defined]  # only here


def with_one_order(task: str) -> None:
    """Let the kitchen's operators do the same goals in the same order.

    Raises:
        BidError: the task has no goals to order.
    """
    if task != KITCHEN:
        raise BidError(f"task '{task}' has no order of goals to keep; valid is '{KITCHEN}'")
    kitchen_goals.draw_goals = in_one_order


CHANGES: Final[dict[str, Callable[[str], None]]] = {"no-pauses": without_pauses, "one-order": with_one_order}


def main() -> int:
    """Change the operators, then make the demonstrations as ``bid bench demos`` does, in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("change", choices=sorted(CHANGES))
    parser.add_argument("task", choices=sorted(OPERATORS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    try:
        CHANGES[options.change](options.task)
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    bench_demos.record = partial(record, operators=options.change)  # type: ignore[assignment]  # usual ones may lie there
    return bid(["bench", "demos", options.task, "--out", str(options.out), "--count", str(options.count)])


if __name__ == "__main__":
    raise SystemExit(main())
