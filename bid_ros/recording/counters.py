"""What a recorder counts while it records: messages, rates, losses, and how long the disk lasts."""

import shutil
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError

LATE: Final = 1000  # messages after which one that was missing does not come any more


class Counters:
    """Counts what arrives. One thread uses it; times are steady, in ns.

    Attributes:
        received: messages by topic.
        lost: messages by topic that were sent and never arrived, by the numbers that their publisher gave them.
    """

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._bytes = 0
        self._numbers: dict[str, int] = {}
        self._missing: dict[str, set[int]] = {}
        self._alone: Collection[str] = ()
        self._before = (0, time.process_time(), 0, Counter[str]())

    def take(self, topic: str, size: int, number: int | None) -> None:
        """Count a message of ``size`` bytes, and what is missing between it and the one before.

        ``number`` counts the messages of one publisher, so it says something only where a topic has just one.
        """
        self.received[topic] += 1
        self._bytes += size
        if number is None:  # once a second the executor takes messages in a way that does not tell
            if topic in self._numbers:
                self._numbers[topic] += 1
            return
        before, missing = self._numbers.get(topic, number), self._missing.setdefault(topic, set())
        if number in missing:  # it was only late
            missing.remove(number)
            self.lost[topic] -= 1
            return
        self._numbers[topic] = number
        if number < before:  # the publisher began anew
            missing.clear()
        elif topic in self._alone and number > before + 1:
            self.lost[topic] += number - before - 1
            missing.update(range(max(before + 1, number - LATE), number))

    def watch(self, alone: Collection[str]) -> None:
        """Take the topics that have one publisher now. The numbers of the others begin anew."""
        for topic in set(alone) - set(self._alone):
            self._numbers.pop(topic, None)
            self._missing.pop(topic, None)
        self._alone = frozenset(alone)

    def rates(self, now_ns: int) -> tuple[dict[str, float], float, float]:
        """Return Hz by topic, MB/s and the share of a core that this process used, since the last call."""
        then_ns, then_cpu, then_bytes, received = self._before
        cpu = time.process_time()
        self._before = (now_ns, cpu, self._bytes, Counter(self.received))
        seconds = (now_ns - then_ns) / NANOSECONDS
        if not then_ns or seconds <= 0:
            return {}, 0.0, 0.0
        rates = {topic: (count - received[topic]) / seconds for topic, count in self.received.items()}
        return rates, (self._bytes - then_bytes) / seconds / 1e6, (cpu - then_cpu) / seconds


class Disk:
    """The disk that a recording grows on.

    Args:
        folder: on it.
        least_mb: MB that must stay free.
    """

    def __init__(self, folder: Path, least_mb: int) -> None:
        self._folder, self._least = folder, least_mb * 1_000_000
        self._written = (0, 0)
        self._rate = 0.0

    def free(self) -> int:
        """Return the free bytes; 0 if the disk is gone."""
        try:
            return shutil.disk_usage(self._folder).free
        except OSError:
            return 0

    def check(self) -> None:
        """Raise RecordingError if too few bytes are free."""
        free = self.free()
        if free < self._least:
            raise RecordingError(
                f"the disk of {self._folder} has {free / 1e6:.0f} MB left; valid is {self._least / 1e6:.0f} MB or "
                "more (min_free_mb): delete something, or record to another disk"
            )

    def seconds_left(self, file: Path | None, now_ns: int) -> float:
        """Return how long the free bytes last while ``file`` grows as it did; infinity while it does not."""
        size = file.stat().st_size if file is not None and file.exists() else 0
        before, then_ns = self._written
        self._written = size, now_ns
        if then_ns and size > before:
            rate = (size - before) * NANOSECONDS / (now_ns - then_ns)
            self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate
        return max(0.0, self.free() - self._least) / self._rate if self._rate else float("inf")
