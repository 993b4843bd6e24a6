"""Fields of a bag that nobody recorded: a data set that becomes a bag lacks what its messages must have."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from bid_ros.recording.metadata import custom_data

KEY: Final = "invented"
"""Key of a bag's custom data: a JSON list of ``TOPIC.FIELD``."""


def marked(fields: Iterable[str]) -> dict[str, str]:
    """Return the custom data that says which fields were invented; none if all were recorded."""
    names = sorted(set(fields))
    return {KEY: json.dumps(names)} if names else {}


def invented_fields(custom: Mapping[str, str]) -> tuple[str, ...]:
    """Return the invented fields, ``TOPIC.FIELD`` each, that the custom data of a bag names."""
    try:
        found = json.loads(custom.get(KEY, "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def invented_in(bags: Iterable[Path]) -> tuple[str, ...]:
    """Return the invented fields of bags, sorted."""
    return tuple(sorted({field for bag in bags for field in invented_fields(custom_data(bag))}))


def sentence(fields: Iterable[str]) -> str:
    """Return what a person should know of invented fields, which are at least one."""
    return f"made from a data set that does not hold them, so nobody recorded: {', '.join(fields)}"
