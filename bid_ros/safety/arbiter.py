"""Chooses the source that commands the arm when several send chunks."""

from typing import Final

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ChunkError

# A person at the controls first, then the runner that prepares episodes, then the policy.
PRIORITY: Final = ("teleop", "episode", "policy")


class Arbiter:
    """Ignores a source while an accepted chunk of a source of higher priority covers *now*.

    Ignoring is not refusing: a policy may keep deciding while a person drives. When the last chunk of the higher source
    ends, the lower source takes over by itself.
    """

    def __init__(self) -> None:
        self._accepted: dict[str, ActionChunk] = {}

    def admits(self, source: str, now_ns: int) -> bool:
        """Whether ``source`` may command at ``now_ns``.

        Raises:
            ChunkError: the source has no priority.
        """
        accepted = (self._accepted.get(higher) for higher in PRIORITY[: _rank(source)])
        return not any(chunk is not None and chunk.covers(now_ns) for chunk in accepted)

    def accepted(self, chunk: ActionChunk, now_ns: int) -> None:
        """Note that ``chunk`` was forwarded at ``now_ns``. Raises ChunkError as :meth:`admits`."""
        _rank(chunk.source)
        if chunk.end_ns > now_ns:
            self._accepted[chunk.source] = chunk

    def release(self, source: str) -> None:
        """Forget the chunk of a source that may no longer command."""
        self._accepted.pop(source, None)


def _rank(source: str) -> int:
    if source not in PRIORITY:
        raise ChunkError(f"a chunk has the source '{source}'; valid are {', '.join(PRIORITY)}")
    return PRIORITY.index(source)
