"""Fields of a checkpoint's configuration that nobody here knows, judged by what they can change."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from bid_ros.core.errors import BidError

OFF: Final[tuple[Any, ...]] = (None, False, 0, "", [], {})  # values that switch nothing on


class UnknownFields:
    """Tells the unknown fields that may be left out from those that may change what a network computes.

    Args:
        named: fields that a person says change nothing.
    """

    def __init__(self, named: tuple[str, ...] = ()) -> None:
        self._named = named
        self._had: set[str] = set()
        self.notes: list[str] = []

    def without(
        self, config: Mapping[str, Any], used: Callable[[str], bool], known: Callable[[str], bool], where: str, who: str
    ) -> dict[str, Any]:
        """Return the fields of a configuration that are known, and note which others were left out.

        Args:
            config: all fields.
            used: whether the field of a name decides what is computed.
            known: whether a field that does not is known.
            where: names the configuration.
            who: does not write the others, for errors.

        Raises:
            BidError: an unknown field has a value that may switch something on; or a person named one that is used.
        """
        for name in filter(used, self._named):
            if name in config:
                raise BidError(f"--ignore-field is '{name}', which decides what {where} computes; valid is another")
        self._had |= config.keys()
        others = [name for name in config if not used(name) and not known(name)]
        left = [name for name in others if name in self._named or config[name] in OFF]
        if unclear := [name for name in others if name not in left]:
            fields = f"the field{'s' * (len(unclear) > 1)} {', '.join(map(repr, unclear))}"
            given = " ".join(f"--ignore-field {name}" for name in unclear)
            raise BidError(
                f"{where} has {fields}, which {who}; an unknown field may change the network: if you know that it does "
                f"not, give {given}"
            )
        if left:
            told = ", ".join(f"'{name}' ({json.dumps(config[name], default=str)})" for name in left)
            self.notes.append(f"{where}: ignored {told}")
        return {name: value for name, value in config.items() if name not in left}

    def check_named(self, where: str) -> None:
        """Raise BidError if a person named a field that no configuration of ``where`` has."""
        for name in self._named:
            if name not in self._had:
                raise BidError(f"--ignore-field is '{name}', which {where} does not have; valid are fields that it has")
