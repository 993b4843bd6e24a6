"""What bid_ros adds to a data set of another format, so that nothing is lost on the way back. Other tools ignore it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bid_ros.formats.base import ABOUT, EXTRAS, Contents

VERSION: Final = 1
KEY: Final = "bid_ros"
STAMP: Final = "stamp_ns"


@dataclass(frozen=True)
class Sidecar:
    """What was added.

    Attributes:
        task, signature, rate_hz: of the data, as in :class:`bid_ros.formats.base.Contents`.
        extras: what the episodes carry.
        episodes: label, seed and so on of each episode; as many as the data set has.
    """

    task: str = ""
    signature: str = ""
    rate_hz: float | None = None
    extras: frozenset[str] = frozenset()
    episodes: tuple[Mapping[str, Any], ...] = ()

    def about(self, number: int) -> dict[str, Any]:
        """Return the fields of an episode that are known beside its rows."""
        return dict(self.episodes[number]) if number < len(self.episodes) else {}


def head(contents: Contents) -> dict[str, Any]:
    """Return what is added for the data set as a whole."""
    return {
        "format": VERSION,
        "task": contents.task,
        "task_signature": contents.signature,
        "rate_hz": contents.rate_hz,
        "extras": sorted(contents.extras),
    }


def read_sidecar(content: Any, episodes: Sequence[Any], lengths: Sequence[int]) -> Sidecar:
    """Return what was added to a data set.

    Args:
        content: what :func:`head` made; None: nothing was added.
        episodes: what was added for each episode, with its ``rows``.
        lengths: rows of each episode that the data set has. If they differ, another tool changed the data since, and
            what was added about the episodes is no longer theirs.
    """
    if not isinstance(content, dict) or content.get("format") != VERSION:
        return Sidecar()
    task, signature = str(content.get("task", "")), str(content.get("task_signature", ""))
    rate = content.get("rate_hz")
    valid = all(isinstance(item, dict) for item in episodes)
    if not valid or [item.get("rows") for item in episodes] != list(lengths):
        return Sidecar(task, signature, rate)
    extras = frozenset(content.get("extras", ())) & frozenset(EXTRAS)
    known = tuple({name: item[name] for name in ABOUT if name in item} for item in episodes)
    return Sidecar(task, signature, rate, extras, known)
