"""What each node of a running system costs."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.core.errors import BidError
from bid_ros.system.folder import System, find_system
from bid_ros.system.run import RunArguments, argument_fields

if TYPE_CHECKING:
    from results.system.cost import Cost

DESCRIPTION: Final = """\
Start a system in its twin, run episodes, and say what each node costs from the first preparation of an episode to the
last end of one: CPU time, that of the middleware, the share of the executor, messages and context switches, each beside
the node's budget. The means of --runs runs are shown."""
_FIXED: Final = ("robot_ip", "rviz", "record")


def main() -> int:
    """Read the options and run the bench; return 0, or 1 if a run did not complete."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("system", help=SYSTEM_HELP)
    names = [item.name for item in argument_fields() if item.name not in _FIXED]
    add_run_arguments(parser, only=names, defaults={"out": "out/system"}, printed="the numbers")
    parser.add_argument("--runs", type=int, default=1, help="runs of all episodes (default 1)")
    parser.add_argument(
        "--against", default="", metavar="FOLDER", help="another checkout of bid_ros; its runs alternate with these"
    )
    parser.add_argument("--plot", default="", metavar="FILE", help="picture to write (default system.png in --out)")
    options = parser.parse_args()
    from results.system.cost import mean  # takes half a second to import
    from results.system.table import draw, markdown

    system, arguments = find_system(options.system), run_arguments(options)
    if options.runs < 1:
        raise BidError(f"--runs is {options.runs}; valid is 1 or more")
    trees = [Path(options.against).absolute(), None] if options.against else [None]
    if trees[0] is not None and not (trees[0] / "bid_ros" / "nodes").is_dir():
        raise BidError(f"--against is {trees[0]}; valid is a checkout of bid_ros")
    found: dict[Path | None, list[dict[str, Cost]]] = {tree: [] for tree in trees}
    for number in range(options.runs):
        for tree in trees:
            name = f"{'now' if tree is None else 'before'}{number}"
            found[tree].append(_measure(system, replace(arguments, out=str(Path(arguments.out, name))), tree))
    nodes = mean(found[None])
    before = mean(found[trees[0]]) if options.against else None
    picture = Path(options.plot or Path(arguments.out, "system.png"))
    draw(nodes, picture, before)
    print(json.dumps(_numbers(nodes, before)) if options.json else markdown(nodes, before))
    print(f"wrote {picture}", file=sys.stderr)
    return 0


def _measure(system: System, arguments: RunArguments, tree: Path | None) -> dict[str, Cost]:
    """Run the system once, with the nodes of another checkout if one is given; return the cost of each node."""
    from results.system.cost import costs
    from results.system.watch import Watch, run_watched

    out, watch = Path(arguments.out), Watch()
    # A path that Python puts first by itself, the present folder, must not win.
    own = {} if tree is None else {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    status = run_watched(system, arguments, watch, own)
    if status:
        raise BidError(f"a run ended with status {status}, so it says nothing; valid is 0; its logs: {out / 'logs'}")
    return costs(watch.courses, out / "bag")


def _numbers(nodes: dict[str, Cost], before: dict[str, Cost] | None) -> dict[str, Any]:
    """Return everything as plain values for JSON."""
    from results.system.cost import around

    versions = {"nodes": nodes} | ({} if before is None else {"before": before})
    values: dict[str, Any] = {key: {name: asdict(cost) for name, cost in of.items()} for key, of in versions.items()}
    values["around_the_policy"] = {key: around(of) for key, of in versions.items()}
    values["above_budget"] = [sentence for name, cost in nodes.items() for sentence in cost.excess(name)]
    return values


if __name__ == "__main__":
    sys.exit(main())
