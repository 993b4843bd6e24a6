"""Fills a message of any type from plain values."""

from collections.abc import Mapping
from typing import Any

from bid_ros.core.errors import BidError
from bid_ros.nodes.topics import message_type


def fill(message: Any, values: Mapping[str, Any]) -> Any:
    """Set fields of a message, and return it.

    Args:
        message: of any type.
        values: by field. A nested message is a mapping, a list of messages a list of mappings.

    Raises:
        BidError: the message has no such field, or the value is of another type.
    """
    for name, value in values.items():
        try:
            if isinstance(value, Mapping):
                fill(getattr(message, name), value)
            elif isinstance(value, list) and value and isinstance(value[0], Mapping):
                kind = _element(message, name)
                setattr(message, name, [fill(kind(), item) for item in value])
            else:
                setattr(message, name, value)
        except (AttributeError, AssertionError) as error:
            raise BidError(f"field '{name}' of {type(message).__name__} does not take {value!r}: {error}") from error
    return message


def _element(message: Any, name: str) -> Any:
    """Return the class of the messages in a list."""
    kind = message.get_fields_and_field_types()[name].removeprefix("sequence<").rstrip(">").split(",")[0]
    package, short = kind.split("/")
    return message_type(f"{package}/msg/{short}")
