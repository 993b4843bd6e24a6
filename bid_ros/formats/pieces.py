"""Pieces of a data set, such as one bag of many: what is written of one is kept whatever the others become."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from bid_ros.formats.base import DataEpisode, Source


@dataclass
class Piece:
    """A piece of a data set, of which what is written is kept whatever else the data set holds.

    Attributes:
        files: what it is read from, and its state: a line for each. Parts of another state are not used.
        read: gives the episodes from a number on, which come behind what the piece's report says.
        report: plain values: what was found so far, also by an earlier run.
        whole: nothing of it could not be read.
    """

    files: tuple[str, ...]
    read: Callable[["Piece", int], Iterator[DataEpisode]]
    report: dict[str, Any] = field(default_factory=dict)
    whole: bool = True


@runtime_checkable
class InPieces(Protocol):
    """A :class:`bid_ros.formats.base.Source` that is read piece by piece. Whoever reads it again reads all of it."""

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces; each is read before the next is asked for."""


def pieces_of(source: Source) -> Iterator[Piece]:
    """Yield the pieces of a data set, bags one by one; each is read before the next is asked for."""
    if isinstance(source, InPieces):
        yield from source.pieces()
    else:
        yield Piece(getattr(source, "files", ()), lambda piece, start: source.episodes(start))
