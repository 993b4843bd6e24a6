"""What families of policies whose networks are ONNX graphs share.

An observation is encoded once a decision by the graph ``encoder``. Where a bundle has a graph ``frames``, each camera
frame is encoded once: from the images of one instant, uint8 ``(1, height, width, 3)`` by camera, to ``points`` float32
``(1, P)``. The encoder then has an input ``points`` float32 ``(To, P)`` in place of the images. An image of distances
is an input float32 ``(1, height, width, 1)``, as :func:`bid_ros.core.observation.seen_by_network` makes it.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation, check_observed, seen_by_network
from bid_ros.core.task import Task
from bid_ros.decoding import StartMode
from bid_ros.policy.anchor import action_anchor, action_bounds
from bid_ros.policy.base import Array, Bundle, Graphs
from bid_ros.policy.committed import continued
from bid_ros.policy.decision_rate import FASTEST_HZ
from bid_ros.policy.runtimes.base import Graph, Runtime, TensorSpec
from bid_ros.policy.runtimes.registry import build_runtime

FLOAT: Final = np.dtype(np.float32)
BYTE: Final = np.dtype(np.uint8)
WHOLE: Final = np.dtype(np.int64)
LEAST_KEPT, MOST_KEPT = 8, 64  # frames whose key points are remembered
# The images of one instant, and their key points.
Frame = tuple[tuple[NDArray[Any], ...], NDArray[np.float32]]


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


def _pixel(feature: Feature) -> np.dtype[Any]:
    """Return the type of an image as networks see it."""
    return BYTE if feature.depth is None else FLOAT


def _check_spec(what: str, found: TensorSpec, wanted: TensorSpec) -> None:
    """Check a shape. An open extent of the graph fits any number. Where ``wanted`` is open, the graph must be."""
    fits = len(found.shape) == len(wanted.shape) and all(
        own is None or own == other for own, other in zip(found.shape, wanted.shape, strict=True)
    )
    if not fits or found.dtype != wanted.dtype:
        raise BundleError(f"{what} is {found.dtype} {found.shape}; valid is {wanted.dtype} {wanted.shape}")


def with_past(ahead: Array, past: int) -> Array:
    """Return chunks ``(N, past + R, D)`` of predicted rows ``(N, R, D)``.

    The past continues their first step backwards. Nobody executes those rows: they only give a chunk its shape.
    """
    step = ahead[:, 1:2] - ahead[:, :1] if ahead.shape[1] > 1 else np.zeros_like(ahead)
    whole: Array = np.concatenate([ahead[:, :1] - step * np.arange(past, 0, -1)[:, None], ahead], axis=1)
    return whole


def frames_in_use(task: Task) -> int:
    """Return how many frames are encoded from one use of a frame to the next, at as many decisions as there can be.

    That is a step of the task. At the start of an episode each decision in it encodes a whole history.
    """
    decisions_a_step = math.ceil(FASTEST_HZ / task.rate_hz)
    return min(max(task.observation_steps * decisions_a_step, LEAST_KEPT), MOST_KEPT)


class FrameEncoder:
    """Turns the frames of an observation into key points, and remembers those of the frames that it encoded last.

    Observations overlap: all but the newest frames were in an earlier one, in that before unless decisions are made
    more often than a step. A frame is found by its checksum and then compared byte by byte, so remembering changes no
    result. One thread only.

    Args:
        graph: from one image per camera, ``(1, height, width, channels)``, to key points float32 ``(1, P)``.
        cameras: names of the images.
        kept: number of frames that are remembered, as :func:`frames_in_use` has it.

    Attributes:
        runs: how often the graph ran.
    """

    def __init__(self, graph: Graph, cameras: Sequence[str], kept: int = LEAST_KEPT) -> None:
        self.graph, self.runs = graph, 0
        self._cameras, self._kept = tuple(cameras), kept
        self._known: dict[int, Frame] = {}  # by checksum, in the order of encoding

    def points(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return key points ``(To, P)`` of images ``(To, height, width, channels)`` by camera, as networks see them."""
        found = [self._point(images) for images in zip(*(values[name] for name in self._cameras), strict=True)]
        while len(self._known) > max(self._kept, len(found)):
            del self._known[next(iter(self._known))]
        return np.concatenate(found)

    def _point(self, images: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
        """Return the key points ``(1, P)`` of one frame, those that are remembered if it was encoded before."""
        checksum = 0
        for image in images:
            checksum = zlib.crc32(np.ascontiguousarray(image).data, checksum)
        known = self._known.get(checksum)
        if known is None or not all(map(np.array_equal, images, known[0])):
            self._known.pop(checksum, None)  # of other images, which is a matter of chance
            known = self._known[checksum] = self._encode(images)
        return known[1]

    def _encode(self, images: Sequence[NDArray[Any]]) -> Frame:
        self.runs += 1
        points = self.graph.run({name: image[None] for name, image in zip(self._cameras, images, strict=True)})
        # Copies: whoever made the images may write into them.
        return tuple(image.copy() for image in images), points


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded observation. All samples of a decision share it.

    Attributes:
        strong: what the graphs of the strong policy made of it.
        weak: the same of the weak policy, None if it was not asked for.
        anchor: ``(D,)``, offset that is added to predicted actions, task units.
        low, high: ``(D,)``, bounds that the sums are clipped to, task units.
        committed: ``(n, D)``, first rows of every chunk, task units. None: a chunk is predicted as a whole.
        delay: rows by which the predicted chunks begin later, because the state was rolled forward.
    """

    strong: Any
    weak: Any
    anchor: Array
    low: Array
    high: Array
    committed: Array | None = None
    delay: int = 0

    def place(self, predicted: Array) -> Array:
        """Return predicted actions ``(..., D)`` with the offset added and clipped, in task units.

        With committed rows they are whole chunks ``(..., H, D)``, which begin with these.
        """
        placed: Array = np.clip(predicted + self.anchor, self.low, self.high)
        return placed if self.committed is None else continued(self.committed, placed, self.delay)


class ObservationEncoder:
    """The graphs that encode an observation, checked.

    Args:
        files: graphs of a policy.
        task: of the policy.
        runtime: loads them.
        width: of the encoder's output ``(1, width)``; None: any.

    Attributes:
        graph: the graph ``encoder``.

    Raises:
        BundleError: a graph cannot be loaded, or does not fit the task.
    """

    def __init__(self, files: Graphs, task: Task, runtime: Runtime, width: int | None = None) -> None:
        self.graph: Graph = runtime.load(files["encoder"])
        self._frames: FrameEncoder | None = None
        self._vectors = [item.name for item in task.vectors]
        steps = task.observation_steps
        inputs = {item.name: TensorSpec((steps, *item.shape), FLOAT) for item in task.vectors}
        if "frames" in files:
            graph = runtime.load(files["frames"])
            images = {item.name: TensorSpec((1, *item.shape), _pixel(item)) for item in task.cameras}
            check_graph(files["frames"].name, graph, images, TensorSpec((1, output_width(graph.output)), FLOAT))
            self._frames = FrameEncoder(graph, list(images), frames_in_use(task))
            inputs["points"] = TensorSpec((steps, output_width(graph.output)), FLOAT)
        else:
            inputs |= {item.name: TensorSpec((steps, *item.shape), _pixel(item)) for item in task.cameras}
        output = TensorSpec((1, output_width(self.graph.output) if width is None else width), FLOAT)
        check_graph(files["encoder"].name, self.graph, inputs, output)

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return the encoding ``(1, width)`` of all features."""
        if self._frames is not None:
            feeds = {"points": self._frames.points(feeds)} | {name: feeds[name] for name in self._vectors}
        return self.graph.run(feeds)


class GraphPolicy:
    """A policy of a bundle with ONNX graphs: it encodes, and draws from the strong and the weak policy.

    A family sets ``_strong`` and ``_weak`` to its loaded networks, ``_weak`` to None without a weak policy.

    Args:
        bundle: a checked bundle.
        task: the task it was checked against.
        runtime: a name for :func:`bid_ros.policy.runtimes.registry.build_runtime`, or a runtime.
        threads: inference threads of a runtime given by name.

    Attributes:
        runtime: name of the library that runs the networks.

    Raises:
        BidError: the runtime cannot be used.
    """

    _strong: Any
    _weak: Any = None

    def __init__(self, bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> None:
        self._chosen = build_runtime(runtime, threads) if isinstance(runtime, str) else runtime
        self.runtime, self._task, self._bundle = self._chosen.name, task, bundle

    @property
    def has_weak(self) -> bool:
        """Whether the bundle has a weak policy."""
        return self._weak is not None

    def encode(self, observation: Observation, weak: bool = True) -> Encoded:
        """Run the observation encoders, once a decision.

        Args:
            observation: features as the task names them, raw units.
            weak: whether weak samples will be drawn. No effect without a weak policy.

        Raises:
            ObservationError: a feature is missing, or has another shape than the task says.
        """
        task, bundle = self._task, self._bundle
        seen = observation.values
        check_observed(seen, task, task.observation_steps)
        feeds: dict[str, NDArray[Any]] = {
            item.name: np.ascontiguousarray(seen_by_network(item, seen[item.name])) for item in task.cameras
        }
        feeds |= {item.name: bundle.observation[item.name].normalise(seen[item.name]) for item in task.vectors}
        strong, other = self._encoded(feeds, weak and self.has_weak)
        newest = {feature.name: seen[feature.name][-1] for feature in task.vectors}
        anchor = action_anchor(task, bundle.action_reference, newest)
        return Encoded(strong, other, anchor, *action_bounds(task, bundle.action_reference, newest, bundle.observation))

    def _encoded(self, feeds: Mapping[str, NDArray[Any]], weak: bool) -> tuple[Any, Any]:
        """Return the encodings of the strong and of the weak policy; the second is None if it is not asked for."""
        return self._strong.encode(feeds), self._weak.encode(feeds) if weak else None

    def _check_drawn(self, start_mode: StartMode) -> None:
        """Raise DecodingError for a start mode that only a family that denoises has."""
        if start_mode != "noise":
            raise DecodingError(
                f"start mode is '{start_mode}', but a policy of the family {self._bundle.family} denoises nothing; "
                "valid is noise"
            )

    def _chunks(self, encoded: Encoded, ahead: NDArray[Any]) -> Array:
        """Return chunks ``(N, H, D)`` in task units of normalised rows ``(N, R, D)`` from the newest observation on."""
        past = self._task.observation_steps - 1
        return with_past(encoded.place(self._bundle.action.rows(past).denormalise(ahead)), past)

    def _drawn(
        self, encoded: Encoded, strong: int, weak: int, draw: Callable[[Any, Any, int], Array]
    ) -> tuple[Array, Array | None]:
        """Return strong and weak samples. ``draw`` takes networks, their encoding and a number.

        Raises:
            DecodingError: a count is not valid, or weak samples are asked for that were not encoded.
        """
        if strong < 1 or weak < 0:
            raise DecodingError(
                f"{strong} strong and {weak} weak samples were asked for; valid is 1 or more and 0 or more"
            )
        chunks = draw(self._strong, encoded.strong, strong)
        if weak == 0:
            return chunks, None
        if self._weak is None or encoded.weak is None:
            raise DecodingError(f"{weak} weak samples were asked for, but the observation has no weak encoding")
        return chunks, draw(self._weak, encoded.weak, weak)
