"""Files that are replaced whole: a reader sees the old content or all of the new one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, suffix: str = "") -> Iterator[Path]:
    """Give the path of a file to write, which takes the place of ``path`` unless the block raises.

    Args:
        path: file to replace; its folder is made.
        suffix: of the file to write, for writers that go by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part{suffix}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 as the whole content of a file."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
