"""A YAML loader that refuses a key that stands twice in a mapping: PyYAML takes the last one, and says nothing."""

from collections.abc import Hashable
from typing import Any, Final

import yaml

MERGE: Final = "tag:yaml.org,2002:merge"
BASE: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C needs libyaml


class RepeatedKeyError(yaml.YAMLError):
    """A key stands twice in one mapping of a YAML text."""


class UniqueKeyLoader(BASE):  # type: ignore[misc]
    """``yaml.CSafeLoader``, or ``yaml.SafeLoader`` without libyaml, that raises RepeatedKeyError.

    A key of a mapping may replace one that ``<<`` brings into it, as YAML has it.
    """

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self._checked: set[int] = set()

    def flatten_mapping(self, node: Any) -> None:
        """Put what ``<<`` brings into a mapping beside its own keys, and check these when it is first asked for."""
        own = () if id(node) in self._checked else [key for key, _ in node.value if key.tag != MERGE]
        self._checked.add(id(node))
        super().flatten_mapping(node)
        seen: dict[Any, Any] = {}
        for key in own:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, Hashable):
                continue  # PyYAML itself refuses a list or a mapping as a key
            first = seen.setdefault(name, key)
            if first is not key:
                lines = " and again in line ".join(str(each.start_mark.line + 1) for each in (first, key))
                raise RepeatedKeyError(f"key '{name}' stands in line {lines}; valid is once")
