"""Demonstrations of scripted operators who never pause: does a policy stand still because its demonstrators did?

Usage: pauses TASK OUT [--count N], of a task with scripted operators (``bid bench demos``). Scenes, goals and skills
are those of the usual operators. What is drawn after the first pause differs. Run again, it goes on. Train and bench
OUT as usual.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

import bid_ros.bench.kitchen.scripted_operator as kitchen
import bid_ros.bench.robomimic.scripted_operator as robomimic
from bid_ros.bench.demonstrating import record
from bid_ros.bench.operators import OPERATORS
from bid_ros.bench.skill import Skill, draw_skill
from bid_ros.commands.tasks import task_path
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task


def tireless(random: np.random.Generator) -> Skill:
    """Draw an operator who never pauses."""
    return replace(draw_skill(random), pause=0.0)


def main() -> int:
    """Make the demonstrations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=sorted(OPERATORS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    for operator in (kitchen, robomimic):
        operator.draw_skill = tireless  # type: ignore[attr-defined]  # only here
    try:
        attempt = OPERATORS[options.task](load_task(task_path(options.task)))
        with tqdm(total=options.count, desc=options.task) as bar:

            def progress(done: int, attempts: int) -> None:
                bar.set_postfix(attempts=attempts)
                bar.update(done - bar.n)

            record(options.task, attempt, options.count, options.out, progress).save(options.out)
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
