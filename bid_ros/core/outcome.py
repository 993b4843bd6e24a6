"""How an episode ended: in one word for programs, in a sentence for people, and who ended it."""

from dataclasses import dataclass
from typing import Any, Final

TASK, SAFETY, INFRASTRUCTURE = "task", "safety", "infrastructure"
CLASSES: Final = ("", TASK, SAFETY, INFRASTRUCTURE)
"""By their numbers in bid_msgs/EpisodeEvent. A test compares them with the installed message."""
SUCCESS: Final = "success"


@dataclass(frozen=True)
class EpisodeOutcome:
    """How an episode ended.

    Attributes:
        text: for people: ``success``, ``timeout``, ``dropped``, ``stopped: <reason>`` or ``aborted: <reason>``; if it
            was disturbed, also by what: ``success, but <reason>``.
        kind: who ended it, one of :data:`CLASSES`. ``task``: the task, its time or a person's judgement. ``safety``:
            the policy asked for what safety refuses. ``infrastructure``: a part failed that is no part of the policy,
            or somebody ended the run; it counts in no success rate. Empty: it has not ended.
        code: one word for programs.
    """

    text: str
    kind: str
    code: str

    @property
    def success(self) -> bool:
        """Whether the task was done, be it in an episode that counts in no rate."""
        return self.text.partition(", but ")[0] == SUCCESS


def outcome_from_text(text: str) -> EpisodeOutcome:
    """Return the outcome of a text, as a task gives one, and as bags of an earlier version hold it."""
    for beginning, kind in (("stopped", SAFETY), ("aborted", INFRASTRUCTURE)):
        if text.startswith(beginning):
            return EpisodeOutcome(text, kind, beginning)
    return EpisodeOutcome(text, TASK, "_".join(text.split()))


def outcome_from_event(event: Any) -> EpisodeOutcome:
    """Return the outcome in a message ``bid_msgs/EpisodeEvent`` of any version, from ROS or from a bag."""
    number = int(getattr(event, "outcome_class", 0))
    if not 0 < number < len(CLASSES):
        return outcome_from_text(str(event.outcome))
    return EpisodeOutcome(str(event.outcome), CLASSES[number], str(event.outcome_code))
