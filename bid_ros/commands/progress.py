"""A count of long work, for people who watch a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDTH = 24


@contextmanager
def progress(unit: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Give a function that counts one more; a terminal shows the count, other outputs do not.

    Args:
        unit: what is counted, in the plural.
        total: how many there will be; None: unknown, so no bar is shown, until the function is called with a number.
    """
    done, shown = 0, sys.stderr.isatty()

    def step(of: int | None = total) -> None:
        nonlocal done
        done += 1
        if shown:
            print(f"\r{_count(done, of)} {unit}", end="", file=sys.stderr, flush=True)

    try:
        yield step
    finally:
        if done and shown:
            print(f"\r{'':60}\r", end="", file=sys.stderr, flush=True)


def _count(done: int, total: int | None) -> str:
    if total is None:
        return str(done)
    filled = round(WIDTH * done / max(total, 1))
    return f"{'█' * filled}{'·' * (WIDTH - filled)} {done} of {total}"
