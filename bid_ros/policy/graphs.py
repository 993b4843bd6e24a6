"""What policies of every family do with their graphs: feed an observation, and check inputs and outputs."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError, ObservationError
from bid_ros.core.observation import Observation
from bid_ros.core.task import Feature, Task
from bid_ros.policy.base import Bundle
from bid_ros.policy.runtimes.base import Graph, TensorSpec

FLOAT: Final = np.dtype(np.float32)
BYTE: Final = np.dtype(np.uint8)
WHOLE: Final = np.dtype(np.int64)


def graph_feeds(bundle: Bundle, task: Task, observation: Observation) -> dict[str, NDArray[Any]]:
    """Return the features of an observation as graphs take them: images uint8, vectors float32 and normalised.

    Raises:
        ObservationError: a feature is missing, or has another shape than the task says.
    """
    return {item.name: _feed(item, bundle, task.observation_steps, observation.values) for item in task.observation}


def _feed(feature: Feature, bundle: Bundle, steps: int, values: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    value, shape = values.get(feature.name), (steps, *feature.shape)
    if value is None or value.shape != shape:
        found = "is missing" if value is None else f"has shape {value.shape}"
        raise ObservationError(f"observation '{feature.name}' {found}; the policy needs {shape}")
    if feature.kind == "image":
        return np.ascontiguousarray(value)
    return bundle.observation[feature.name].normalise(value)


def output_width(output: TensorSpec) -> int | None:
    """Return the last extent of an output, None if it is open."""
    return output.shape[-1] if output.shape else None


def check_graph(name: str, graph: Graph, inputs: Mapping[str, TensorSpec], output: TensorSpec) -> None:
    """Raise BundleError if a graph has other inputs or another output. An open extent of the graph fits any number."""
    if set(graph.inputs) != set(inputs):
        raise BundleError(f"graph {name} has the inputs {sorted(graph.inputs)}; valid are {sorted(inputs)}")
    for key, wanted in inputs.items():
        _check_spec(f"graph {name}: input '{key}'", graph.inputs[key], wanted)
    _check_spec(f"graph {name}: output", graph.output, output)


def _check_spec(what: str, found: TensorSpec, wanted: TensorSpec) -> None:
    """Check a shape. An open extent of the graph fits any number. Where ``wanted`` is open, the graph must be."""
    fits = len(found.shape) == len(wanted.shape) and all(
        own is None or own == other for own, other in zip(found.shape, wanted.shape, strict=True)
    )
    if not fits or found.dtype != wanted.dtype:
        raise BundleError(f"{what} is {found.dtype} {found.shape}; valid is {wanted.dtype} {wanted.shape}")
