"""Checks the parameters of all nodes against their declarations, before any node is started."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.system.description import NodeSpec


def check_parameters(specs: Iterable[NodeSpec]) -> int:
    """Check the parameters. Return their number.

    Raises:
        BidError: a node has no such parameter, or its value is of another type or outside its range.
    """
    return sum(_check(spec.name, spec.executable, spec.parameters) for spec in specs)


def _check(node: str, executable: str, given: Mapping[str, Any]) -> int:
    module = importlib.import_module(f"bid_ros.nodes.{executable}")
    declared = {parameter.name: parameter for parameter in module.PARAMETERS}
    for name, value in given.items():
        if name not in declared:
            raise BidError(f"node '{node}' has no parameter '{name}'; valid are {', '.join(declared)}")
        parameter = declared[name]
        if type(value) is not type(parameter.default):
            kind = type(parameter.default).__name__
            raise BidError(f"parameter '{name}' of node '{node}' is {value!r}; valid is a {kind}")
        if parameter.minimum is not None and parameter.maximum is not None:
            check_range(f"node '{node}'", name, value, parameter.minimum, parameter.maximum, BidError)
    return len(given)
