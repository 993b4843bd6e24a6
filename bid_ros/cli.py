# PYTHON_ARGCOMPLETE_OK: a shell that looks for this completes verbs and options
"""The ``bid`` command: one verb a task, help that teaches, ``--json`` for machines."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from bid_ros import __version__
from bid_ros.commands.examples import show_examples
from bid_ros.commands.moved import check_moved
from bid_ros.core.errors import BidError
from bid_ros.core.extras import OF_RUN, install_line
from bid_ros.core.files import OF_A_DISK
from bid_ros.sim import opengl_variables

OF_MEMORY: Final = ("can't allocate memory", "out of memory")  # PyTorch's words on the CPU and on a GPU
FIRST: Final = "begin with"
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    FIRST: ("up", "teleop", "record", "episodes", "new", "check"),
    "drive": ("rehearse", "retrace", "operator", "reset"),
    "record": ("demos", "replay"),
    "data": ("data",),
    "policy": ("train", "policy", "serve", "remote"),
    "evaluate": ("evaluate", "bench"),
    "system": ("cameras", "calibrate", "accept", "secure", "view", "top", "schema"),
}
_ROBOT: Final = ("operator", "reset")  # both are of one module
VERBS: Final = tuple(dict.fromkeys("robot" if name in _ROBOT else name for names in GROUPS.values() for name in names))
"""The modules below ``commands`` that declare the verbs."""
WIDTH: Final = 12
COMPLETES: Final = "_ARGCOMPLETE"
"""Is set by a shell that asks what may follow, when a person presses TAB."""
CLOSED_PIPE: Final = 128 + signal.SIGPIPE


class _Listed:
    """What a module adds its verb to: it keeps the line of each verb, which the help shows in groups."""

    def __init__(self, verbs: Any) -> None:
        self._verbs = verbs
        self.lines: dict[str, str] = {}

    def add_parser(self, name: str, help: str, **rest: Any) -> argparse.ArgumentParser:
        """Add a verb and return its parser."""
        self.lines[name] = help
        added: argparse.ArgumentParser = self._verbs.add_parser(name, **rest)
        return added


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb."""
    parser = argparse.ArgumentParser(
        prog="bid",
        usage="bid [-h] [--version] VERB ...",
        description="Run learned action-chunking policies reactively on real arms, or on their twins.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"bid_ros {__version__}", help="show the version and exit"
    )
    # Without help of its own: the verbs stand below, in groups.
    verbs = parser.add_subparsers(prog="bid", dest="verb", required=True, metavar="VERB", help=argparse.SUPPRESS)
    listed = _Listed(verbs)
    for module in VERBS:
        import_module(f"bid_ros.commands.{module}").add_parser(listed)
    show_examples(parser)
    parser.epilog = _verbs_text(listed.lines)
    return parser


def _verbs_text(lines: Mapping[str, str]) -> str:
    groups = [
        "\n".join([f"{group}:", *(f"    {name:<{WIDTH}}{lines[name]}" for name in names)])
        for group, names in GROUPS.items()
    ]
    twin = "Without --robot-ip a system starts in its twin: hardware is only touched when asked for by address."
    return "\n\n".join([*groups, twin])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Return the exit status: 2 is bad input, with one sentence about it; 141, as a shell has it, that nobody reads the
    output any more.
    """
    os.environ.update(opengl_variables())
    words = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            check_moved(words)
            parser = build_parser()
            if COMPLETES in os.environ:
                from argcomplete import autocomplete

                autocomplete(parser)  # it ends this process
            parsed = parser.parse_args(words)
            return int(parsed.run(parsed))
        finally:
            sys.stdout.flush()  # here, where it can still be said that nobody reads it
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in OF_RUN:
            raise
        print(f"error: bid needs the extra 'run' ({error}); install it with: {install_line('run')}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # as in `bid episodes list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again at its end
        return CLOSED_PIPE
    except OSError as error:
        if error.filename is None and error.errno not in OF_A_DISK:
            raise  # not about a file
        unnamed = "a file or a device fails" if error.errno == errno.EIO else "a file could not be written"
        print(f"error: {unnamed if error.filename is None else error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(words in str(error) for words in OF_MEMORY):
            raise
        print(f"error: there is too little memory for this ({str(error) or 'no more is said'})", file=sys.stderr)
        return 2
    except EOFError:  # Ctrl-D at a question, or a terminal that is gone
        print("error: nobody answers here any more; valid is an answer to the question", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
