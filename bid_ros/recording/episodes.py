"""Episodes of a bag, from the START and END events."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from bid_ros.core.outcome import EpisodeOutcome, outcome_from_event, outcome_from_text
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import EPISODE_EVENT
from bid_ros.recording.outcomes import ALL, SUCCESS
from bid_ros.recording.reader import BagMessage, BagReader

# Constants of bid_msgs/EpisodeEvent. A test compares them with the installed message.
PREPARE: Final = 0
START: Final = 1
END: Final = 2
UNDO: Final = 3
DISCARDED: Final = "discarded"
UNDONE: Final = "undone"
NOT_ENDED: Final = EpisodeOutcome("not ended", "", "")


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode of a recording.

    Attributes:
        index: number of the episode in its run.
        seed: seed of the scene.
        label: "clean", "diverse", a decoder's name, ...
        start_ns, end_ns: stamps of START and END in ROS time; ``end_ns`` is None if the recording has no END.
        start_received_ns, end_received_ns: when the recorder got these events.
        success: success according to END; False without END.
        outcome: outcome according to END, or why there is none.
        outcome_class, outcome_code: as :class:`bid_ros.core.outcome.EpisodeOutcome`; empty without END.
    """

    index: int
    seed: int
    label: str
    start_ns: int
    end_ns: int | None
    start_received_ns: int
    end_received_ns: int | None
    success: bool
    outcome: str
    outcome_class: str = ""
    outcome_code: str = ""


def unwanted(episode: RecordedEpisode, wanted: str) -> str:
    """Return why an episode is left out, in a few words; empty if it is not.

    Args:
        episode: of a recording.
        wanted: one of :data:`bid_ros.recording.outcomes.OUTCOMES`. What a person discarded or took back is in none of
            them.
    """
    if episode.end_ns is None:
        return "it has no END"
    if episode.outcome in (DISCARDED, UNDONE):
        return episode.outcome
    if wanted == ALL or episode.success == (wanted == SUCCESS):
        return ""
    return episode.outcome or ("success" if episode.success else "no success")


def find_episodes(bag: BagReader) -> tuple[RecordedEpisode, ...]:
    """Return the episodes of a bag in the order of their start. Raises RecordingError if the bag is damaged."""
    return episodes_from_events(bag.messages([EPISODE_EVENT]))


def episodes_from_events(events: Iterable[BagMessage]) -> tuple[RecordedEpisode, ...]:
    """Pair START and END events, given in the order of their receipt.

    A START without END is an episode without an end: the recording stopped, or the next episode began. An END without
    START is ignored. A repeated event (the topic is latched) counts once. After its END an episode may get another
    outcome, by a second END or by an UNDO.
    """
    episodes: list[RecordedEpisode] = []
    begun: BagMessage | None = None
    for event in events:
        kind = event.message.kind
        if begun is not None and _same_start(begun, event):
            continue
        if begun is not None and kind == END and event.message.episode == begun.message.episode:
            episodes.append(_episode(begun, event))
            begun = None
        elif begun is None and kind in (END, UNDO):
            _correct(episodes, event.message)
        elif begun is not None and kind in (PREPARE, START):
            episodes.append(_episode(begun, None))
            begun = None
        if kind == START:
            begun = event
    if begun is not None:
        episodes.append(_episode(begun, None))
    return tuple(episodes)


def _correct(episodes: list[RecordedEpisode], event: Any) -> None:
    """Give the episode that ended last another outcome, if the event is about it."""
    if episodes and episodes[-1].index == event.episode and episodes[-1].end_ns is not None:
        undone = event.kind == UNDO
        found = outcome_from_text(UNDONE) if undone else outcome_from_event(event)
        episodes[-1] = replace(
            episodes[-1],
            success=not undone and bool(event.success),
            outcome=found.text,
            outcome_class=found.kind,
            outcome_code=found.code,
        )


def _same_start(begun: BagMessage, event: BagMessage) -> bool:
    return bool(event.message.kind == START and stamp_ns(event.message) == stamp_ns(begun.message))


def _episode(begun: BagMessage, ended: BagMessage | None) -> RecordedEpisode:
    start = begun.message
    found = NOT_ENDED if ended is None else outcome_from_event(ended.message)
    return RecordedEpisode(
        index=int(start.episode),
        seed=int(start.seed),
        label=str(start.label),
        start_ns=stamp_ns(start),
        end_ns=None if ended is None else stamp_ns(ended.message),
        start_received_ns=begun.stamp_ns,
        end_received_ns=None if ended is None else ended.stamp_ns,
        success=ended is not None and bool(ended.message.success),
        outcome=found.text,
        outcome_class=found.kind,
        outcome_code=found.code,
    )
