"""Episodes of a bag of anybody's robot, and how they ended."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from bid_ros.core.bag_mapping import BagEpisodes, BagPlace, BagSuccess, BagTopics, place_of, word
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.recording.episodes import RecordedEpisode
from bid_ros.recording.foreign.links import FeatureLinks, check_topic, first_message
from bid_ros.recording.foreign.messages import body_of
from bid_ros.recording.foreign.tables import EpisodeSpan, read_spans, read_success
from bid_ros.recording.reader import BagReader

UNSAID: Final = "nothing says how it ended"
BOUNDS: Final = "the begin and end of episodes"
ENDS: Final = "the success of episodes"


def read_foreign_episodes(reader: BagReader, mapping: BagTopics, links: FeatureLinks) -> tuple[RecordedEpisode, ...]:
    """Return the episodes of a bag in the order of time. Without a word on success each is one.

    Raises:
        RecordingError: a topic or a file that is to say them is missing, has another form, or is of other episodes.
    """
    spans = _spans(reader, mapping.episodes, links)
    ended = _ends(reader, mapping.success, spans, links)
    return tuple(
        _episode(number, replace(span, success=good), mapping.success is not None or span.success is not None)
        for number, (span, good) in enumerate(zip(spans, ended, strict=True))
    )


def check_said(reader: BagReader, mapping: BagTopics, links: FeatureLinks) -> tuple[frozenset[str], bool]:
    """Return the topics that say episodes and success, and whether anything says success.

    Raises:
        RecordingError: a topic is missing, or has no value; or a file is of other episodes.
    """
    rule, ended = mapping.episodes, mapping.success
    found = []
    for text, said in ((rule.topic, BOUNDS), (ended.topic if ended else "", ENDS)):
        if text:
            next(values_of(reader, place_of(text), links, said), None)
            found.append(place_of(text).topic)
    for value in (rule.begin, rule.end):
        if str(value).startswith("/"):
            found.append(place_of(str(value)).topic)
            check_topic(reader, found[-1], BOUNDS)
    if rule.table or (ended and ended.file):  # files beside a bag are of its episodes, or of none
        read_foreign_episodes(reader, mapping, links)
    spans = read_spans(reader.path, rule.table, reader.span_ns) if rule.table else []
    return frozenset(found), ended is not None or any(span.success is not None for span in spans)


def _episode(number: int, span: EpisodeSpan, told: bool) -> RecordedEpisode:
    good = span.success if told else True
    return RecordedEpisode(
        index=number,
        seed=0,
        label="",
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        start_received_ns=span.start_ns,
        end_received_ns=span.end_ns,
        success=bool(good),
        outcome="" if good else UNSAID if good is None else "failure",
    )


def _spans(reader: BagReader, rule: BagEpisodes, links: FeatureLinks) -> list[EpisodeSpan]:
    if rule.table:
        return read_spans(reader.path, rule.table, reader.span_ns)
    if rule.gap is not None:
        return _between_gaps(reader, rule.gap, links)
    if rule.topic or str(rule.begin).startswith("/"):
        return _from_events(_events(reader, rule, links))
    return [EpisodeSpan("0", *reader.span_ns)]


def _between_gaps(reader: BagReader, gap_s: float, links: FeatureLinks) -> list[EpisodeSpan]:
    """Return the runs of commands between pauses of more than ``gap_s``."""
    stamps = np.sort(np.array([links.raw_ns(item) for item in reader.raw(links.commanded)], dtype=np.int64))
    if not len(stamps):
        return []
    cuts = np.flatnonzero(np.diff(stamps) > gap_s * NANOSECONDS)
    firsts, lasts = [0, *(cuts + 1)], [*cuts, len(stamps) - 1]
    runs = [(int(stamps[first]), int(stamps[last])) for first, last in zip(firsts, lasts, strict=True)]
    return [EpisodeSpan(str(number), *run) for number, run in enumerate(run for run in runs if run[0] < run[1])]


def _events(reader: BagReader, rule: BagEpisodes, links: FeatureLinks) -> Iterator[tuple[int, bool]]:
    """Yield time (ns) of each event, and whether it begins an episode; those of other values are left out."""
    if rule.topic:
        place = place_of(rule.topic)
        words = {word(rule.begin): True, word(rule.end): False}
        for stamp, value in values_of(reader, place, links, BOUNDS):
            if word(value) in words:
                yield stamp, words[word(value)]
        return
    places = {place_of(str(text)).topic: begins for text, begins in ((rule.begin, True), (rule.end, False))}
    for topic in places:
        check_topic(reader, topic, BOUNDS)
    for item in reader.raw(places):  # of any type, as an event of a service is
        yield links.raw_ns(item), places[item.topic]


def _from_events(events: Iterator[tuple[int, bool]]) -> list[EpisodeSpan]:
    """Pair begins and ends. A topic may repeat its value; one that ends with the bag has no end."""
    spans: list[EpisodeSpan] = []
    for stamp, begins in events:
        running = bool(spans) and spans[-1].end_ns is None
        if begins and not running:
            spans.append(EpisodeSpan(str(len(spans)), stamp, None))
        elif running and not begins:
            spans[-1] = replace(spans[-1], end_ns=stamp)
    return spans


def values_of(reader: BagReader, place: BagPlace, links: FeatureLinks, said: str) -> Iterator[tuple[int, Any]]:
    """Yield time (ns) and value of each message that has one, such as ``data`` of a Bool or a String.

    Raises:
        RecordingError: there is no such topic or field, or it holds no single value.
    """
    first_message(reader, place, said)
    for item in reader.messages([place.topic]):
        body = body_of(item.message, place)
        value = getattr(body, "data", body)
        if value is None:  # an event of a service without a request
            continue
        if not isinstance(value, bool | int | float | str | np.generic):
            kind = reader.topics[reader.recorded_name(place.topic)]
            raise RecordingError(
                f"bag {reader.path}: {place.text} for {said} holds no single value (type {kind}); valid is a Bool, a "
                "String, a number, or such a field as /TOPIC:field"
            )
        yield links.stamp_ns(item), value


def _ends(
    reader: BagReader, rule: BagSuccess | None, spans: Sequence[EpisodeSpan], links: FeatureLinks
) -> Sequence[bool | None]:
    """Return whether each episode succeeded; None: nothing says it."""
    if rule is None:
        return [span.success for span in spans]
    if rule.file:
        return read_success(reader.path, rule.file, [span.name for span in spans])
    said = list(values_of(reader, place_of(rule.topic), links, ENDS))
    nexts = [*(span.start_ns for span in spans[1:]), None]
    ended: list[bool | None] = []
    for span, until in zip(spans, nexts, strict=True):
        within = [value for stamp, value in said if span.start_ns <= stamp and (until is None or stamp < until)]
        ended.append(word(within[-1]) == word(rule.value) if within else None)
    return ended
