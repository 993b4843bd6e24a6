"""Registries: items by name, from this package and from the entry points of other installed packages."""

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from bid_ros.core.errors import BidError

Item = TypeVar("Item")


class Registry(Generic[Item]):
    """Items by name. An item of another package is imported only when it is asked for.

    Args:
        what: word for an item in errors, such as ``robot``.
        group: group of the entry points, such as ``bid_ros.robots``. The entry point's name is the item's name.
        own: returns this package's items. It is called once, when they are needed.
        error: class of the errors.
    """

    def __init__(
        self, what: str, group: str, own: Callable[[], Mapping[str, Item]], error: type[BidError] = BidError
    ) -> None:
        self._what, self._group, self._collect, self._error = what, group, own, error

    def names(self) -> tuple[str, ...]:
        """Return every name: this package's first, then those of other packages, sorted."""
        return (*self._own, *sorted(self._foreign.keys() - self._own.keys()))

    def find(self, name: str) -> Item:
        """Return the item of a name.

        Raises:
            BidError: (its subclass ``error``) no item has this name, two packages have one, or its module fails to
                import.
        """
        foreign = self._foreign.get(name, [])
        if len(foreign) + (name in self._own) > 1:
            where = [*(["bid_ros"] if name in self._own else []), *(point.value for point in foreign)]
            raise self._error(f"{self._what} '{name}' is registered {len(where)} times: {', '.join(where)}; keep one")
        if name in self._own:
            return self._own[name]
        if not foreign:
            raise self._error(f"{self._what} '{name}' does not exist; valid are {', '.join(self.names())}")
        return self._load(foreign[0])

    @cached_property
    def _own(self) -> Mapping[str, Item]:
        return self._collect()

    @cached_property
    def _foreign(self) -> Mapping[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self._group):
            # The same distribution, installed and editable, is listed twice.
            if point.value not in {other.value for other in found.setdefault(point.name, [])}:
                found[point.name].append(point)
        return found

    def _load(self, point: EntryPoint) -> Item:
        try:
            item: Item = point.load()
        except Exception as error:  # the other package's code may raise anything
            raise self._error(
                f"{self._what} '{point.name}' cannot be used: its entry point {point.value} fails to import: {error!r}"
            ) from error
        return item


def collect(package: str, attribute: str) -> dict[str, Any]:
    """Return ``attribute`` of each module and sub-package of ``package`` that has it, by module name."""
    folder = Path(str(import_module(package).__file__)).parent
    modules = {info.name: import_module(f"{package}.{info.name}") for info in iter_modules([str(folder)])}
    return {name: getattr(module, attribute) for name, module in modules.items() if hasattr(module, attribute)}
