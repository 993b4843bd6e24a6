"""Grants of motion: who may move the arm, and until when."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.margins import Margins
from bid_ros.safety.arbiter import PRIORITY

SHADOW: Final = "shadow"
"""What is granted where the policy decides and is judged, and moves nothing."""
GRANTED: Final = (*PRIORITY, SHADOW)
LONGEST_NS: Final = NANOSECONDS  # a longer grant would move the arm for longer with nobody in charge


@dataclass(frozen=True)
class Lapse:
    """A grant under which the arm moved, and which was neither renewed nor released.

    Attributes:
        source: source that was allowed to move the arm.
        granter: node that should have renewed the grant.
        limit_s: s for which it was valid.
    """

    source: str
    granter: str
    limit_s: float

    def __str__(self) -> str:
        return (
            f"nobody renewed the grant of '{self.source}' for {self.limit_s:.2f} s: the node '{self.granter}', which "
            "lets it move the arm, died or was held up: look at its log and at the load of this computer, then reset"
        )


@dataclass
class _Held:
    """The newest grant of one granter, and which of its sources have moved the arm under it."""

    sources: tuple[str, ...]
    duration_ns: int
    until_ns: int
    used: set[str] = field(default_factory=set)


class Grants:
    """The grants of every granter. It reads no clock: every time is a steady one in integer nanoseconds.

    A source may move the arm only while a grant for it is live. A grant counts from its arrival, so the granter's clock
    does not matter. Safety node and arm node each keep their own grants.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def renew(self, granter: str, sources: Sequence[str], duration_ns: int, steady_ns: int) -> None:
        """Take a grant that arrived at ``steady_ns``; it replaces the former one of the same granter.

        Args:
            granter: who gives it.
            sources: who may move the arm; none ends the former grant, which is no lapse.
            duration_ns: how long it is valid.
            steady_ns: when it arrived.

        Raises:
            BidError: a source is unknown, or the duration is not above 0 and up to 1 s.
        """
        unknown = [source for source in sources if source not in GRANTED]
        if unknown:
            raise BidError(f"'{granter}' grants '{unknown[0]}'; valid are {', '.join(GRANTED)}")
        if not sources:
            self._held.pop(granter, None)
            return
        if not 0 < duration_ns <= LONGEST_NS:
            raise BidError(
                f"'{granter}' grants {', '.join(sources)} for {duration_ns / NANOSECONDS:g} s; "
                f"valid is above 0, up to {LONGEST_NS / NANOSECONDS:g} s"
            )
        used = self._held[granter].used & set(sources) if granter in self._held else set()
        self._held[granter] = _Held(tuple(sources), duration_ns, steady_ns + duration_ns, used)

    def live(self, source: str, steady_ns: int) -> bool:
        """Return whether ``source`` may move the arm at ``steady_ns``."""
        return any(source in held.sources and steady_ns <= held.until_ns for held in self._held.values())

    def use(self, source: str) -> None:
        """Note that ``source`` moves the arm under every grant that it has."""
        for held in self._held.values():
            if source in held.sources:
                held.used.add(source)

    def note(self, margins: Margins, steady_ns: int) -> None:
        """Note in ``margins`` how near each grant that is in use is to its end at ``steady_ns``."""
        for granter, held in self._held.items():
            if held.used:
                margins.over(f"grant of {granter}", steady_ns - held.until_ns + held.duration_ns, held.duration_ns)

    def lapsed(self, steady_ns: int) -> Lapse | None:
        """Forget the grants that are over at ``steady_ns``; return one that was in use, None if none was.

        A grant is in use from the first :meth:`use` until it is released. It has not lapsed while another granter
        grants the same source.
        """
        found = None
        for granter, held in list(self._held.items()):
            if steady_ns <= held.until_ns:
                continue
            del self._held[granter]
            for source in sorted(held.used):
                if not self.live(source, steady_ns):
                    found = found or Lapse(source, granter, held.duration_ns / NANOSECONDS)
        return found
