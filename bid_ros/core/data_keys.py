"""Keys of data sets: where a data set of another format holds what a task sees and does."""

import re
from dataclasses import field
from typing import Annotated, Final

from pydantic import BeforeValidator

from bid_ros.core.bag_mapping import BagTopics, bag_topics
from bid_ros.core.errors import TaskError
from bid_ros.core.settings import settings

_KEY: Final = re.compile(r"([^\[\]]+?)\s*(?:\[([^\[\]]+)\])?")
_RANGE: Final = re.compile(r"(\d+):(\d+)")


@settings(error=TaskError)
class DataKeys:
    """Where a data set of another format holds what the task sees and does, by feature of the task.

    A key is ``KEY``, ``KEY[0:3]`` (columns from 0 to before 3), ``KEY[4, 2]`` (columns in this order) or
    ``KEY[x.pos, y.pos]`` (columns by the names that the data set gives them).

    Attributes:
        observation: key of each observation, such as observation.state[0:3].
        action: key of each action, such as action[0:3].
        unit: unit of a feature in data sets of others, observed and commanded. For joints: ``rad`` or ``deg``. For a
            position: ``m``, ``cm`` or ``mm``. For a gripper: these, ``percent`` (100 is open), ``fraction`` (1 is open)
            or its numbers open and closed, such as ``0 to 0.8``. For a vector: ``rad`` to ``mm``. Values become rad and
            m; without a unit they are taken as rad and m. Joints of a task with ``robot: none`` may be ``percent`` of
            their range, -100 to 100: they become -1 to 1.
        topics: where bags of other recorders hold the features, and their episodes. A mapping of texts alone gives
            recorded names of topics, such as ``camera/wrist/image: /wrist/image_raw``.
    """

    observation: dict[str, str] = field(default_factory=dict, hash=False)
    action: dict[str, str] = field(default_factory=dict, hash=False)
    unit: dict[str, str] = field(default_factory=dict, hash=False)
    topics: Annotated[BagTopics, BeforeValidator(bag_topics)] = field(default_factory=BagTopics, hash=False)


def split_key(text: str) -> tuple[str, tuple[int | str, ...] | None]:
    """Return the key of a text like ``KEY[0:3]`` and its columns, numbers or names; None: all of them.

    Raises:
        TaskError: the text has another form, or its range is empty.
    """
    found = _KEY.fullmatch(text.strip())
    if found is None:
        raise TaskError(f"data key '{text}' has another form; valid are KEY, KEY[0:3], KEY[4, 2] and KEY[name, name]")
    key, columns = found[1], found[2]
    if columns is None:
        return key, None
    if span := _RANGE.fullmatch(columns.strip()):
        first, end = int(span[1]), int(span[2])
        if first >= end:
            raise TaskError(f"data key '{text}' names no column; valid is a range like 0:3, its end left out")
        return key, tuple(range(first, end))
    parts = [part.strip() for part in columns.split(",")]
    if not all(parts):
        raise TaskError(f"data key '{text}' has an empty column; valid are KEY[0:3], KEY[4, 2] and KEY[name, name]")
    return key, tuple(int(part) if part.isdigit() else part for part in parts)
