"""Make what the result pages show: each name is a measurement, a table or a picture, with options of its own.

Run it from a checkout: ``python scripts/results NAME [OPTION ...]``. ``NAME --help`` says more.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
MADE: Final[dict[str, tuple[str, str]]] = {
    "peers": ("results/latency.md", "a decision beside eager PyTorch, and beside the machine's floor"),
    "decision-time": ("results/latency.md", "time of a decision of each bundle, alternating"),
    "real-time": ("results/latency.md", "lateness of decisions beside other work, garbage collection"),
    "system": ("explanation/architecture.md", "CPU time and messages of each node, beside its budget"),
    "evaluate": ("results/robot-tasks.md", "success of decoders in the twin, cup static and moving"),
    "pusht": ("results/pusht.md", "every rollout of Push-T, then the summaries in docs/results/data"),
    "tables": ("results/pusht.md, pusht-families.md", "tables and pictures of Push-T from docs/results/data; --check"),
    "vqbet": ("results/pusht-families.md", "policies of VQ-BeT and of a flow, and their rollouts"),
    "pooled": ("results/pusht-families.md", "decoders against each other over all cells of a bench"),
    "pusht-progress": ("results/pusht-families.md", "when the block covers its mark, and how long the agent rests"),
    "history": ("results/pusht-families.md", "policies that look back 1 to 10 steps, and their rollouts"),
    "history-table": ("results/pusht-families.md", "their table and picture from docs/results/data; --check"),
    "delays": ("how-to/train.md", "policies trained for delays, decoders that know of them, and their rollouts"),
    "causes": ("results/recommendation.md", "flows of three widths, with early and late weak ones, and their rollouts"),
    "delays-table": ("how-to/train.md", "their table"),
    "few-steps": ("results/latency.md", "samples with fewer denoising steps"),
    "offline-prediction": ("results/offline-prediction.md", "does offline evaluation rank decoders as episodes do"),
    "recommendation": ("results/recommendation.md", "is what bid evaluate recommends the best decoder; --check"),
    "standing": ("results/recommendation.md", "how long the robot stands still in the episodes of a bench"),
    "changed-bench": ("results/recommendation.md", "a bench whose policy sees no motion, or with white action noise"),
    "changed-operators": (
        "results/recommendation.md",
        "demonstrations of scripted operators who never pause, or keep one order",
    ),
    "imported-latency": ("results/latency.md", "time of a decision of imported policies"),
    "ur-servo-period": ("results/latency.md", "period of the set-points to a UR"),
    "interrupts": ("explanation/stopping.md", "what a signal at a random time leaves behind"),
    "margins": ("explanation/stopping.md", "how near honest runs come to the limits of the checks"),
    "starts": ("explanation/stopping.md", "starts of a twin and its driver beside busy processes"),
    "soak": (
        "explanation/stopping.md",
        "an hour of a twin, half of it beside others: memory, missed decisions",
    ),
    "safety-cost": ("results/latency.md", "what judging chunks costs, and the way through the safety node"),
    "slowing": ("results/robot-tasks.md", "success where chunks are slowed down, and where they stop"),
    "recorder-load": ("reference/recordings.md", "what the recorder loses under two fast cameras"),
    "conversion": ("reference/recordings.md", "time and memory of conversions of data sets, beside a plain copy"),
    "space-time": ("reference/bundles.md", "time of converting observations and chunks of a space"),
    "teleop-latency": ("how-to/teleoperate.md", "time from a key or a pad to the arm's set-point"),
    "teleop-page": ("how-to/teleoperate.md", "picture of the page for teleoperation"),
    "watch-pictures": ("how-to/watch.md", "pictures of Rerun, Foxglove and bid top"),
}
"""By name: the pages below docs/, and what is made."""


def main(arguments: list[str]) -> int:
    """Run what a name stands for. Return its exit status; 2 is bad input."""
    width = max(map(len, MADE))
    names = "\n".join(f"  {name:<{width}}  {what}\n  {'':<{width}}  docs/{page}" for name, (page, what) in MADE.items())
    parser = argparse.ArgumentParser(
        prog="python scripts/results",
        description=__doc__,
        epilog=f"names, what each makes, and where that is shown:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", choices=list(MADE), help="see below")
    given = parser.parse_args(arguments[:1])
    module = given.name.replace("-", "_")
    if (script := HERE / f"{module}.sh").is_file():
        return subprocess.run(["bash", str(script), *arguments[1:]], check=False).returncode
    sys.path.insert(0, str(HERE.parent))
    sys.argv = [f"python scripts/results {given.name}", *arguments[1:]]
    from bid_ros.core.errors import BidError  # --help needs no installation

    package = (HERE / module).is_dir()
    try:
        runpy.run_module(f"results.{module}.command" if package else f"results.{module}", run_name="__main__")
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
