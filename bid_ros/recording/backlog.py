"""A bounded queue of serialized messages. When it is full it drops images first."""

from collections import Counter, deque
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True)
class Pending:
    """A serialized message that waits to be written."""

    topic: str
    stamp_ns: int
    data: bytes


class Backlog:
    """Messages between the callbacks and the file, at most ``limit_bytes`` of them. Not thread-safe.

    Expendable messages (images) may fill half of it. The oldest of them make room for other messages: a lost frame
    costs less than a lost decision or a lost end of an episode.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept: deque[Pending] = deque()
        self._expendable: deque[Pending] = deque()
        self._expendable_bytes = 0
        self.size_bytes = 0
        self.dropped: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._kept) + len(self._expendable)

    def offer(self, item: Pending, expendable: bool) -> bool:
        """Append a message. Without room, return False and count it in ``dropped``."""
        size = len(item.data)
        while self._expendable and not expendable and self.size_bytes + size > self._limit:
            oldest = self._expendable.popleft()
            self.size_bytes -= len(oldest.data)
            self._expendable_bytes -= len(oldest.data)
            self.dropped[oldest.topic] += 1
        too_many = expendable and self._expendable_bytes + size > self._limit // 2
        if too_many or self.size_bytes + size > self._limit:
            self.dropped[item.topic] += 1
            return False
        (self._expendable if expendable else self._kept).append(item)
        self.size_bytes += size
        self._expendable_bytes += size if expendable else 0
        return True

    def drain(self) -> list[Pending]:
        """Remove and return everything, in the order of the stamps."""
        items = sorted([*self._kept, *self._expendable], key=attrgetter("stamp_ns"))
        self._kept.clear()
        self._expendable.clear()
        self.size_bytes = self._expendable_bytes = 0
        return items
