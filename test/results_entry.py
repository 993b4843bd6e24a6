"""Runs a name of scripts/results in this process."""

from results.__main__ import main


def results(*arguments: str) -> int:
    """Run ``python scripts/results`` with arguments. Return its exit status."""
    try:
        return main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
