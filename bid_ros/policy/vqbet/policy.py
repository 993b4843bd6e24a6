"""A VQ-BeT policy: samples N action chunks from one network call.

The graphs, ONNX files of the strong and of the weak policy:

- encoder: one input per observation feature, by its name: an image uint8 ``(To, height, width, 3)`` with values 0
  to 255, a vector float32 ``(To, S)`` normalised; one output ``forecast`` float32 ``(1, C + C C + 2 C R D)``: logits of
  the first code, logits of the second code given each first one, and offsets of all codes. R is
  ``horizon - (observation_steps - 1)``.
- frames, where there is one: see :mod:`bid_ros.policy.graph_policy`.
- decoder: input ``codes`` int64 ``(N, 2)`` with any N, output ``rows`` float32 ``(N, R, D)``, what the codes stand for.
  It runs once, for all pairs of codes, when the policy is loaded.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.observation import blank_observation
from bid_ros.core.task import Task
from bid_ros.decoding import StartMode
from bid_ros.policy.base import Array, Bundle, Capabilities, Graphs
from bid_ros.policy.graph_policy import FLOAT, WHOLE, Encoded, GraphPolicy, ObservationEncoder, check_graph
from bid_ros.policy.runtimes.base import Runtime, TensorSpec
from bid_ros.policy.vqbet.codes import CodeForecast, chunks_of, draw_codes, forecast_size, split_forecast


class VqBetPolicy(GraphPolicy):
    """Samples action chunks from a bundle. Results do not depend on earlier calls. One thread only.

    Its arguments are those of :class:`bid_ros.policy.graph_policy.GraphPolicy`.

    Attributes:
        capabilities: sampling cannot start from a chunk, nor be guided. No row of the past is predicted.

    Raises:
        BundleError: a graph cannot be loaded, or its inputs or output do not fit the task.
        BidError: the runtime cannot be used.
    """

    def __init__(self, bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> None:
        super().__init__(bundle, task, runtime, threads)
        self.capabilities = Capabilities(starts=False, made_up_rows=task.observation_steps - 1)
        self._strong = _Networks(bundle.strong, task, self._chosen, bundle.settings.codes)
        if bundle.weak is not None:
            self._weak = _Networks(bundle.weak, task, self._chosen, bundle.settings.codes)

    def sample(
        self,
        encoded: Encoded,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
    ) -> tuple[Array, Array | None]:
        """Sample chunks in task units, as :meth:`bid_ros.policy.base.Policy.sample` says.

        Nothing is predicted of the past. Rows before ``observation_steps - 1`` continue the first step of the chunk
        backwards.

        Args:
            rng: source of two uniform numbers a sample, first of the strong, then of the weak samples.
            start: not used.
            start_mode: valid is ``noise`` only.

        Raises:
            DecodingError: a count or the start mode is not valid, or weak samples are asked for that were not encoded.
        """
        self._check_drawn(start_mode)

        def draw(networks: _Networks, forecast: CodeForecast, count: int) -> Array:
            codes = draw_codes(forecast, self._bundle.settings.temperature, rng.random((count, 2)))
            return self._chunks(encoded, chunks_of(codes, networks.table, forecast))

        return self._drawn(encoded, strong, weak, draw)

    def warm_up(self, samples: int) -> None:
        """Run every network once, so that no decision has to wait for compiling."""
        encoded = self.encode(blank_observation(self._task))
        self.sample(encoded, samples, samples if self.has_weak else 0, np.random.default_rng(0))


class _Networks:
    """The graphs of one policy, checked. ``table`` ``(C, C, R, D)`` is what each pair of codes stands for."""

    def __init__(self, files: Graphs, task: Task, runtime: Runtime, codes: int) -> None:
        self._codes, self._shape = codes, (task.chunk_rows, task.action_dim)
        self._encoder = ObservationEncoder(files, task, runtime, forecast_size(codes, *self._shape))
        decoder = runtime.load(files["decoder"])
        wanted = {"codes": TensorSpec((None, 2), WHOLE)}
        check_graph(files["decoder"].name, decoder, wanted, TensorSpec((None, *self._shape), FLOAT))
        pairs = np.stack(np.meshgrid(np.arange(codes), np.arange(codes), indexing="ij"), axis=-1)
        rows = decoder.run({"codes": pairs.reshape(-1, 2).astype(np.int64)})
        self.table: NDArray[np.float32] = rows.reshape(codes, codes, *self._shape)

    def encode(self, feeds: Mapping[str, NDArray[Any]]) -> CodeForecast:
        """Return the prediction from all features."""
        return split_forecast(self._encoder.run(feeds), self._codes, *self._shape)
