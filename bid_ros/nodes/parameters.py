"""Parameters of the nodes: described, and checked against what was given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.system.parameters import unknown_parameter


@dataclass(frozen=True)
class Parameter:
    """A declared node parameter: name, default (its type is the parameter's), description, valid range of numbers.

    A node reads its parameters once. Only one that is ``changeable`` in its class may be set while it runs.
    """

    name: str
    default: Any
    description: str
    minimum: float | None = None
    maximum: float | None = None

    def descriptor(self, changeable: bool) -> ParameterDescriptor:
        """Return the descriptor that ``ros2 param describe`` shows."""
        descriptor = ParameterDescriptor(description=self.description, read_only=not changeable)
        if self.minimum is not None and self.maximum is not None:
            number = type(self.default)
            ends = {"from_value": number(self.minimum), "to_value": number(self.maximum)}
            if number is int:
                descriptor.integer_range = [IntegerRange(**ends)]
            else:
                descriptor.floating_point_range = [FloatingPointRange(**ends)]
        return descriptor


def check_parameters(node: str, declared: Sequence[Parameter], given: Mapping[str, Any]) -> None:
    """Hold the parameters that are given to a node against those that it declares.

    Raises:
        BidError: a parameter is unknown, has the wrong type or lies outside its range.
    """
    known = {parameter.name: parameter for parameter in declared}
    for name, value in given.items():
        if name not in known:
            raise BidError(unknown_parameter(node, name, known))
        parameter = known[name]
        if _kind(value) != _kind(parameter.default):
            raise BidError(f"parameter '{name}' of node '{node}' is {value!r}; valid is a {_kind(parameter.default)}")
        if parameter.minimum is not None and parameter.maximum is not None:
            check_range(f"node '{node}'", name, value, parameter.minimum, parameter.maximum, BidError)


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return f"{kind} of {type(value[0]).__name__}" if kind == "list" and value else kind
