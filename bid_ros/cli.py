"""The ``bid`` command: one verb a task, help that teaches, ``--json`` for machines."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from bid_ros.core.errors import BidError
from bid_ros.sim import opengl_variables

VERBS = (
    *("new", "check", "up", "teleop", "record", "demos", "learn", "compile", "rehearse", "bench", "data"),
    *("import_policy", "datasets", "episodes", "replay", "retrace", "evaluate", "view", "top", "robot", "schema"),
    *("serve", "remote"),
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb."""
    parser = argparse.ArgumentParser(
        prog="bid",
        description="Run learned action-chunking policies reactively on real arms, or on their twins.",
        epilog="Without --robot-ip a system starts in its twin: hardware is only touched when asked for by address.",
    )
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for name in VERBS:
        import_module(f"bid_ros.commands.{name}").add_parser(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return the exit status; 2 is bad input, with one sentence about it."""
    os.environ.update(opengl_variables())
    try:
        parsed = build_parser().parse_args(arguments)
        return int(parsed.run(parsed))
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None:
            raise  # not about a file, for example a closed pipe
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
