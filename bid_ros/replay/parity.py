"""Holds replayed decisions against the recorded ones, bit for bit."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.tables import markdown_table
from bid_ros.replay.cue import RecordedDecision

WENT_ON: Final = "the decoder goes on with its last decision where the recorded one decided"


@dataclass
class Tally:
    """What came out for one stream of decisions, usually an episode.

    Attributes:
        decisions: made in the replay.
        compared: of them, those that the recording holds too.
        observations: whose observation has the recorded digest.
        same: whose chunk is equal to the recorded one in every bit.
        choices: that chose the sample of the same number.
        largest: largest difference of a value from the recorded one, in its own unit.
        missing: times without a decision, because the recording lacks a sample.
    """

    decisions: int = 0
    compared: int = 0
    observations: int = 0
    same: int = 0
    choices: int = 0
    largest: float = 0.0
    missing: int = 0


@dataclass
class Parity:
    """Counts by stream.

    Attributes:
        streams: counts by the number of the stream.
        problem: first reason for a missing decision.
    """

    streams: dict[int, Tally] = field(default_factory=dict)
    problem: str = ""

    def miss(self, stream: int, problem: str) -> None:
        """Note a moment at which nothing could be decided."""
        self._of(stream).missing += 1
        self.problem = self.problem or problem

    def add(
        self, stream: int, recorded: RecordedDecision | None, digest: int, selected: NDArray[Any], index: int
    ) -> None:
        """Note a decision.

        Args:
            stream: number of its stream.
            recorded: decision of the recording; None if it holds none.
            digest: of the observation.
            selected: ``(H, D)`` what was decided, in any precision; compared as float32, as it is recorded.
            index: of the chosen sample.
        """
        tally = self._of(stream)
        tally.decisions += 1
        if recorded is None:
            return
        found = np.asarray(selected, dtype=np.float32)
        tally.compared += 1
        tally.observations += digest == recorded.digest
        tally.choices += index == recorded.index
        tally.same += found.shape == recorded.selected.shape and found.tobytes() == recorded.selected.tobytes()
        if found.shape == recorded.selected.shape:
            tally.largest = max(tally.largest, float(np.abs(found - recorded.selected).max()))

    @property
    def total(self) -> Tally:
        """Sum over all streams."""
        every = self.streams.values()
        counts = {name: sum(getattr(item, name) for item in every) for name in vars(Tally()) if name != "largest"}
        return Tally(**counts, largest=max((item.largest for item in every), default=0.0))

    @property
    def exact(self) -> bool:
        """Whether every decision of the recording came out again, equal in every bit."""
        total = self.total
        return total.decisions == total.same == total.observations > 0 and not total.missing

    def _of(self, stream: int) -> Tally:
        return self.streams.setdefault(stream, Tally())


def table(parity: Parity) -> str:
    """Return the counts as a table in Markdown, an episode a row."""
    total = parity.total
    if not total.compared:
        counts = [(stream, item.decisions, item.missing) for stream, item in parity.streams.items()]
        return markdown_table(("episode", "decisions", "missing"), counts)
    heads = "episode", "decisions", "same observation", "same decision", "same choice", "largest difference", "missing"
    rows = [
        (name, item.decisions, item.observations, item.same, item.choices, f"{item.largest:.3g}", item.missing)
        for name, item in (*parity.streams.items(), ("all", total))
    ]
    return markdown_table(heads, rows)


def summary(parity: Parity) -> dict[str, Any]:
    """Return the counts for JSON."""
    return {
        "exact": parity.exact,
        **asdict(parity.total),
        "problem": parity.problem,
        "episodes": {str(stream): asdict(item) for stream, item in parity.streams.items()},
    }
