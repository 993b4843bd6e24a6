"""Where bags of other recorders hold features, episodes and success: ``data: topics`` of a task file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bid_ros.core.errors import TaskError
from bid_ros.core.settings import Positive, parse_settings, settings

NEXT: Final = "next"  # stands for the place of an action that nobody commanded: what is measured one row later
_PLACE: Final = re.compile(r"(/[\w/]+)(?::([A-Za-z]\w*(?:\.\w+)*))?\s*(?:\[([^\[\]]+)\])?", re.ASCII)
_FORM: Final = (
    "valid are /TOPIC, /TOPIC[0, 1], /TOPIC[name], /tf[frame, frame] and /TOPIC:field, as /arm/state:tool.pose"
)
Value = bool | int | str


@dataclass(frozen=True)
class BagPlace:
    """A field of the messages of a topic.

    Attributes:
        text: as the task file has it.
        topic: full name.
        path: names of the fields that lead to it; empty: the message.
        columns: values of it, by number or name; empty: all that the feature is made of.
    """

    text: str
    topic: str
    path: tuple[str, ...] = ()
    columns: tuple[int | str, ...] = ()


def place_of(text: str) -> BagPlace:
    """Return the place that a text like ``/arm/state:tool.pose`` or ``/joint_states[elbow, 2]`` names.

    Raises:
        TaskError: the text has another form.
    """
    found = _PLACE.fullmatch(text.strip())
    parts = [part.strip() for part in (found[3] or "").split(",")] if found else [""]
    if found is None or (found[3] is not None and not all(parts)):
        raise TaskError(f"place '{text}' has another form; {_FORM}")
    span = re.fullmatch(r"(\d+):(\d+)", parts[0])
    if span and len(parts) == 1:
        parts = [str(number) for number in range(int(span[1]), int(span[2]))]
        if not parts:
            raise TaskError(f"place '{text}' names no value; valid is a range like 0:3, its end left out")
    columns = tuple(int(part) if part.isdigit() else part for part in parts) if found[3] is not None else ()
    return BagPlace(text, found[1], tuple(found[2].split(".")) if found[2] else (), columns)


@settings(error=TaskError)
class BagEpisodes:
    """Where the episodes of a bag are: one of ``topic``, ``gap``, ``table``, or two topics. Default: a bag is one.

    Attributes:
        topic: place of the value that begins and ends episodes, such as ``/recording`` of ``std_msgs/Bool``.
        begin, end: these values; or, without a topic, two topics, such as ``/start/_service_event``: each message on
            them is one.
        gap: a pause of more than this many s without any command ends an episode, and the next command begins one.
        table: CSV file with the columns ``start`` and ``end`` in s, since the bag's first message or since the epoch;
            others may be ``episode`` (a name), ``success`` and ``bag``. A relative path is looked for in the bag's
            folder, then beside it.
    """

    topic: str = ""
    begin: Value = True
    end: Value = False
    gap: Positive | None = None
    table: str = ""

    def __post_init__(self) -> None:
        own = [str(value) for value in (self.begin, self.end) if str(value).startswith("/")]
        ways = [self.topic, self.gap, self.table, *own[:1]]
        if sum(map(bool, ways)) > 1 or len(own) == 1:
            raise TaskError("episodes come from several places; valid is one: topic, gap or table, or a "
                            "topic each as begin and end")  # fmt: skip
        if word(self.begin) == word(self.end):
            raise TaskError(f"episodes begin and end with '{self.begin}'; valid are two different values")
        for text in filter(None, (self.topic, *own)):
            place_of(text)


@settings(error=TaskError)
class BagSuccess:
    """What says whether an episode succeeded: ``topic`` or ``file``. Default: nothing does.

    Attributes:
        topic: place of a value. The last one before the next episode begins counts.
        value: of success; any other is of failure.
        file: CSV with the columns ``episode`` and ``success``, and ``bag`` if it is of several; or JSON or YAML with a
            mapping of episodes to success, or a list, or these by bag. Episodes are called by their number, from 0 on,
            or as the table of times names them. Where it is: as the table.
    """

    topic: str = ""
    value: Value = True
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.topic) == bool(self.file):
            raise TaskError("success has neither topic nor file, or both; valid is one of them")
        if self.topic:
            place_of(self.topic)


@settings(error=TaskError)
class BagTopics:
    """What bags of others call things.

    Attributes:
        names: recorded name of each topic of bid_ros that a bag only calls otherwise, such as
            ``camera/wrist/image: /wrist/image_raw``.
        observation: place of each observation, such as ``/joint_states[elbow, wrist]`` or ``/arm/state:tool.pose``; or
            ``/tf[base_link, tool0]``, the pose of the second frame in the first.
        action: place of each action: what was commanded. ``next``: what is observed under that name one row later.
        episodes: where episodes begin and end.
        success: what says how they ended.
    """

    names: dict[str, str] = field(default_factory=dict, hash=False)
    observation: dict[str, str] = field(default_factory=dict, hash=False)
    action: dict[str, str] = field(default_factory=dict, hash=False)
    episodes: BagEpisodes = field(default_factory=BagEpisodes)
    success: BagSuccess | None = None

    def __post_init__(self) -> None:
        for topic, name in self.names.items():
            if not name.startswith("/"):
                raise TaskError(f"data topic '{topic}' is recorded as '{name}'; valid is a name that begins with /")
        for group in (self.observation, self.action):
            for text in group.values():
                if text != NEXT:
                    place_of(text)

    @property
    def mapped(self) -> bool:
        """Whether features are named: then bags of others are read by these places."""
        return bool(self.observation or self.action)


def bag_topics(content: Any) -> Any:
    """Return :class:`BagTopics` of what a file holds. A mapping of texts alone is one of names."""
    if not isinstance(content, Mapping) or (content and not all(isinstance(key, str) for key in content)):
        return content
    if all(isinstance(value, str) for value in content.values()):
        return BagTopics(names=dict(content))
    return parse_settings(BagTopics, dict(content), "data: topics")


def word(value: Any) -> str:
    """Return a value of a file or a message as a text that can be compared: true and True are the same."""
    return str(value).strip().lower()
