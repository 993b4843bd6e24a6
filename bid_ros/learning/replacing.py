"""Writes a bundle beside the one that it replaces."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bid_ros.core.errors import BundleError
from bid_ros.policy.bundle import MANIFEST


def check_replaceable(out: Path) -> None:
    """Raise BundleError if ``out`` is anything but a bundle, an empty folder or free."""
    if out.exists() and not (out / MANIFEST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise BundleError(f"{out} exists and is not a bundle; valid is a new or empty folder or a bundle to replace")


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """Give a new folder beside ``out``, which replaces the bundle there if nothing fails meanwhile.

    Raises:
        BundleError: ``out`` is not a bundle.
    """
    check_replaceable(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        yield new
        if out.exists():
            out.rename(Path(temporary) / "old")
        new.rename(out)
