"""A VQ-BeT policy: samples N action chunks from one network call.

The graphs, ONNX files of the strong and of the weak policy:

- encoder: one input per observation feature, by its name: an image uint8 ``(To, height, width, 3)`` with values 0
  to 255, a vector float32 ``(To, S)`` normalised; one output ``forecast`` float32 ``(1, C + C C + 2 C R D)``: logits of
  the first code, logits of the second code given each first one, and offsets of all codes. R is
  ``horizon - (observation_steps - 1)``.
- frames, where there is one: from the images of one instant, uint8 ``(1, height, width, 3)`` by camera, to ``points``
  float32 ``(1, P)``. The encoder then has an input ``points`` float32 ``(To, P)`` in place of the images, and each
  frame is encoded once.
- decoder: input ``codes`` int64 ``(N, 2)`` with any N, output ``rows`` float32 ``(N, R, D)``, what the codes stand for.
  It runs once, for all pairs of codes, when the policy is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import DecodingError
from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.task import Task
from bid_ros.decoding import StartMode
from bid_ros.policy.anchor import action_anchor, action_bounds
from bid_ros.policy.base import Bundle, Capabilities, Graphs
from bid_ros.policy.diffusion.frames import FrameEncoder
from bid_ros.policy.graphs import BYTE, FLOAT, WHOLE, check_graph, graph_feeds, output_width
from bid_ros.policy.runtimes.base import Graph, Runtime, TensorSpec
from bid_ros.policy.runtimes.registry import build_runtime
from bid_ros.policy.vqbet.codes import Forecast, chunks_of, draw_codes, forecast_size, split_forecast

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded observation. All samples of a decision share it.

    Attributes:
        strong: what the strong policy predicts.
        weak: what the weak policy predicts, None if it was not asked for.
        anchor: ``(D,)``, offset that is added to predicted actions, task units.
        low, high: ``(D,)``, bounds that the sums are clipped to, task units.
    """

    strong: Forecast
    weak: Forecast | None
    anchor: Array
    low: Array
    high: Array


class VqBetPolicy:
    """Samples action chunks from a bundle. Results do not depend on earlier calls. One thread only.

    Args:
        bundle: a checked bundle.
        task: the task it was checked against.
        runtime: a name for :func:`bid_ros.policy.runtimes.registry.build_runtime`, or a runtime.
        threads: inference threads of a runtime given by name.

    Attributes:
        runtime: name of the library that runs the networks.
        capabilities: sampling cannot start from a chunk, nor be guided. No row of the past is predicted.

    Raises:
        BundleError: a graph cannot be loaded, or its inputs or output do not fit the task.
        BidError: the runtime cannot be used.
    """

    def __init__(self, bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> None:
        chosen = build_runtime(runtime, threads) if isinstance(runtime, str) else runtime
        self.runtime, self._task, self._bundle = chosen.name, task, bundle
        self.capabilities = Capabilities(starts=False, made_up_rows=task.observation_steps - 1)
        self._strong = _Networks(bundle.strong, task, chosen, bundle.settings.codes)
        self._weak = None if bundle.weak is None else _Networks(bundle.weak, task, chosen, bundle.settings.codes)

    @property
    def has_weak(self) -> bool:
        """Whether the bundle has a weak policy."""
        return self._weak is not None

    def encode(self, observation: Observation, weak: bool = True) -> Encoded:
        """Run the networks, once a decision.

        Args:
            observation: features as the task names them, raw units.
            weak: whether weak samples will be drawn. No effect without a weak policy.

        Raises:
            ObservationError: a feature is missing, or has another shape than the task says.
        """
        task, bundle = self._task, self._bundle
        feeds = graph_feeds(bundle, task, observation)
        second = self._weak.forecast(feeds) if weak and self._weak is not None else None
        newest = {feature.name: observation.values[feature.name][-1] for feature in task.vectors}
        anchor = action_anchor(task, bundle.action_reference, newest)
        low, high = action_bounds(task, bundle.action_reference, newest, bundle.observation)
        return Encoded(self._strong.forecast(feeds), second, anchor, low, high)

    def sample(
        self,
        encoded: Encoded,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
    ) -> tuple[Array, Array | None]:
        """Sample chunks. The same generator state and arguments give the same chunks.

        Args:
            encoded: result of :meth:`encode`.
            strong: number of strong samples, at least 1.
            weak: number of weak samples, 0 for none. Their number does not change the strong samples.
            rng: source of two uniform numbers a sample, first of the strong, then of the weak samples.
            start: not used.
            start_mode: valid is ``noise`` only.

        Returns:
            Strong ``(strong, H, D)`` and weak ``(weak, H, D)`` or None, task units, float64. Nothing is predicted of
            the past: rows before ``observation_steps - 1`` continue the first step of the chunk backwards.

        Raises:
            DecodingError: a count or the start mode is not valid, or weak samples are asked for that were not encoded.
        """
        if strong < 1 or weak < 0:
            raise DecodingError(
                f"{strong} strong and {weak} weak samples were asked for; valid is 1 or more and 0 or more"
            )
        if start_mode != "noise":
            raise DecodingError(
                f"start mode is '{start_mode}', but a policy of the family vqbet denoises nothing; valid is noise"
            )
        chunks = self._draw(self._strong, encoded.strong, strong, encoded, rng)
        if weak == 0:
            return chunks, None
        if self._weak is None or encoded.weak is None:
            raise DecodingError(f"{weak} weak samples were asked for, but the observation has no weak encoding")
        return chunks, self._draw(self._weak, encoded.weak, weak, encoded, rng)

    def _draw(
        self, networks: "_Networks", forecast: Forecast, count: int, encoded: Encoded, rng: np.random.Generator
    ) -> Array:
        codes = draw_codes(forecast, self._bundle.settings.temperature, rng.random((count, 2)))
        ahead = chunks_of(codes, networks.table, forecast)
        past = self.capabilities.made_up_rows
        actions = self._bundle.action.rows(past).denormalise(ahead) + encoded.anchor
        placed: Array = np.clip(actions, encoded.low, encoded.high)
        step = placed[:, 1:2] - placed[:, :1] if placed.shape[1] > 1 else np.zeros_like(placed)
        return np.concatenate([placed[:, :1] - step * np.arange(past, 0, -1)[:, None], placed], axis=1)

    def warm_up(self, samples: int) -> None:
        """Run every network once, so that no decision has to wait for compiling."""
        encoded = self.encode(blank_observation(self._task))
        self.sample(encoded, samples, samples if self.has_weak else 0, np.random.default_rng(0))


class _Networks:
    """The graphs of one policy, checked. ``table`` ``(C, C, R, D)`` is what each pair of codes stands for."""

    def __init__(self, files: Graphs, task: Task, runtime: Runtime, codes: int) -> None:
        self._codes, self._shape = codes, (task.horizon - task.observation_steps + 1, task.action_dim)
        self._frames = _load_frames(files, task, runtime)
        self._vectors = [item.name for item in task.vectors]
        self._encoder: Graph = runtime.load(files["encoder"])
        steps = task.observation_steps
        inputs = {item.name: TensorSpec((steps, *item.shape), FLOAT) for item in task.vectors}
        if self._frames is not None:
            inputs["points"] = TensorSpec((steps, output_width(self._frames.graph.output)), FLOAT)
        else:
            inputs |= {item.name: TensorSpec((steps, *item.shape), BYTE) for item in task.cameras}
        size = forecast_size(codes, *self._shape)
        check_graph(files["encoder"].name, self._encoder, inputs, TensorSpec((1, size), FLOAT))
        decoder = runtime.load(files["decoder"])
        wanted = {"codes": TensorSpec((None, 2), WHOLE)}
        check_graph(files["decoder"].name, decoder, wanted, TensorSpec((None, *self._shape), FLOAT))
        pairs = np.stack(np.meshgrid(np.arange(codes), np.arange(codes), indexing="ij"), axis=-1)
        rows = decoder.run({"codes": pairs.reshape(-1, 2).astype(np.int64)})
        self.table: NDArray[np.float32] = rows.reshape(codes, codes, *self._shape)

    def forecast(self, feeds: Mapping[str, NDArray[Any]]) -> Forecast:
        """Return the prediction from all features."""
        if self._frames is not None:
            feeds = {"points": self._frames.points(feeds)} | {name: feeds[name] for name in self._vectors}
        return split_forecast(self._encoder.run(feeds), self._codes, *self._shape)


def _load_frames(files: Graphs, task: Task, runtime: Runtime) -> FrameEncoder | None:
    if "frames" not in files:
        return None
    graph = runtime.load(files["frames"])
    wanted = {item.name: TensorSpec((1, *item.shape), BYTE) for item in task.cameras}
    check_graph(files["frames"].name, graph, wanted, TensorSpec((1, output_width(graph.output)), FLOAT))
    return FrameEncoder(graph, list(wanted))
