"""The ``bid`` command: one verb a task, help that teaches, ``--json`` for machines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bid_ros.commands import bench, data, demos, learn, rehearse, robot, up
from bid_ros.errors import BidError

VERBS = (up, demos, learn, rehearse, bench, data, robot)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb."""
    parser = argparse.ArgumentParser(
        prog="bid",
        description="Run learned action-chunking policies reactively on real arms, or on their twins.",
        epilog="Without --robot-ip a system starts in its twin: hardware is only touched when asked for by address.",
    )
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for module in VERBS:
        module.add_parser(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status (2 = bad input, said in one sentence)."""
    parsed = build_parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None:
            raise  # not a file that somebody named, a closed pipe for example
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
