"""Stops of a run: what each was, and how many in a row a run bears."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from bid_ros.core.outcome import INFRASTRUCTURE, EpisodeOutcome

IN_A_ROW: Final = 3  # stops that are not the policy's end the run: what they have in common does not go away by itself

LEFT: Final = "keep away: the arm goes on by itself; no episode runs yet"
"""What a person is told whose start lets a robot's arm move, first or after a stop: the next start is an episode's."""


class EpisodeStopped(Exception):
    """The episode cannot go on.

    Attributes:
        outcome: of the episode.
        rule: of the latched stop, which has to be reset; empty if nothing is latched.

    Args:
        outcome, rule: as the attributes.
    """

    def __init__(self, outcome: EpisodeOutcome, rule: str = "") -> None:
        super().__init__(outcome.text)
        self.outcome, self.rule = outcome, rule

    @property
    def latched(self) -> bool:
        """Whether the safety node or the arm stopped it."""
        return bool(self.rule)


def aborted(reason: str, code: str) -> EpisodeStopped:
    """Return the stop of an episode that the run itself cannot go on with; ``code`` is one word for programs."""
    return EpisodeStopped(EpisodeOutcome(f"aborted: {reason}", INFRASTRUCTURE, code))


@dataclass
class Stop:
    """One stop of a run.

    Attributes:
        episode: index of the episode, from 0.
        phase: ``preparation`` or ``episode``. What stopped in its preparation is prepared again.
        outcome, outcome_class, outcome_code: as :class:`bid_ros.core.outcome.EpisodeOutcome`.
        rule: of the safety node, or ``arm``; empty if nothing was latched.
        reset_by: ``run`` or ``person``; empty if it was not reset.
        reset_s: s until the system was ready again.
    """

    episode: int
    phase: str
    outcome: str
    outcome_class: str
    outcome_code: str
    rule: str = ""
    reset_by: str = ""
    reset_s: float = 0.0


@dataclass
class Stops:
    """The stops of a run.

    Attributes:
        found: each stop, in order.
    """

    found: list[Stop] = field(default_factory=list)
    _in_a_row: int = 0

    def add(self, stop: EpisodeStopped, episode: int, prepared: bool) -> Stop:
        """Note a stop. ``prepared``: the episode had begun; before that, the policy had no share in it."""
        outcome = stop.outcome
        phase = "episode" if prepared else "preparation"
        self.found.append(Stop(episode, phase, outcome.text, outcome.kind, outcome.code, stop.rule))
        self._in_a_row = 0 if prepared and outcome.kind != INFRASTRUCTURE else self._in_a_row + 1
        return self.found[-1]

    def ended(self) -> None:
        """Note that an episode came to its end without a stop."""
        self._in_a_row = 0

    def too_many(self) -> str:
        """Return one sentence if the run must not go on, else an empty text."""
        if self._in_a_row < IN_A_ROW:
            return ""
        last = self.found[-1]
        return f"{IN_A_ROW} stops in a row that are not the policy's; the last, {last.outcome_code}: {last.outcome}"

    def latched(self) -> Sequence[Stop]:
        """Return the stops that the safety node or the arm latched."""
        return [stop for stop in self.found if stop.rule]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the stops for ``run.json``."""
        return [{**asdict(stop), "reset_s": round(stop.reset_s, 3)} for stop in self.found]
