"""A diffusion policy: samples N action chunks from an observation.

The graphs, ONNX files of the strong and of the weak policy:

- encoder: one input per observation feature, by its name: an image uint8 ``(To, height, width, 3)`` with values 0
  to 255, a vector float32 ``(To, S)`` normalised; one output ``condition`` float32 ``(1, C)``.
- frames, where there is one: see :mod:`bid_ros.policy.graph_policy`.
- denoiser: inputs ``sample`` float32 ``(N, H, D)`` with any N, ``step`` int64 ``(1,)``, the training time step, and
  ``condition`` float32 ``(1, C)``; one output ``prediction`` float32 ``(N, H, D)``. Of a policy that takes a prefix
  also ``prefix_rows`` int64 ``(1,)``: so many of the first rows of each sample are clean.
- sampler, where there is one: all steps of the sampling in one call. Inputs ``noise`` float32 ``(noises, N, H, D)``
  with any N, and ``condition``; one output ``chunks`` float32 ``(N, H, D)``. A start from anything else than noise uses
  the denoiser. Of a policy that takes a prefix also ``prefix`` float32 ``(1, H, D)``, the given rows and what follows,
  and ``prefix_rows``.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.task import Task
from bid_ros.decoding import Guidance, StartMode
from bid_ros.policy.base import Array, Bundle, Capabilities, Graphs
from bid_ros.policy.committed import Prefix, roll_forward
from bid_ros.policy.diffusion.guided import Differentiable, guided
from bid_ros.policy.diffusion.sampler import Denoise, Sampler
from bid_ros.policy.graph_policy import FLOAT, Encoded, GraphPolicy, ObservationEncoder, check_graph, output_width
from bid_ros.policy.runtimes.base import Graph, Runtime, TensorSpec

ENCODING: Final = ("frames", "encoder")  # roles of the graphs that encode
SAMPLER_TOLERANCE: Final = 1e-3  # normalised units; rounding differs far less


@runtime_checkable
class WholeSampling(Protocol):
    """A runtime that computes all steps of a sampling in one call, whatever graphs a bundle has."""

    def sampling(self, denoiser: Graph, sampler: Sampler) -> Graph:
        """Return the graph ``sampler``, made from a denoiser that this runtime loaded."""


class DiffusionPolicy(GraphPolicy):
    """Samples action chunks from a bundle. Results do not depend on earlier calls. One thread only.

    Its arguments are those of :class:`bid_ros.policy.graph_policy.GraphPolicy`.

    Raises:
        BundleError: a graph cannot be loaded, or its inputs or output do not fit the task.
        BidError: the runtime cannot be used.
    """

    def __init__(self, bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> None:
        super().__init__(bundle, task, runtime, threads)
        self._sampler, prefix = Sampler(bundle.settings), bundle.settings.clean_step is not None
        self._strong = _Networks(bundle.strong, task, self._chosen, self._sampler, prefix)
        self._weak: _Networks | None = None
        if bundle.weak is not None:
            shared = all(bundle.weak.get(role) == bundle.strong.get(role) for role in ENCODING)
            encoder = self._strong.encoder if shared else None
            self._weak = _Networks(bundle.weak, task, self._chosen, self._sampler, prefix, encoder)

    @property
    def capabilities(self) -> Capabilities:
        """Samples can be guided where the runtime derives the strong policy's denoiser and the sampler allows it."""
        settings = self._bundle.settings
        if settings.roll_forward:  # the chunk begins later than one to start from or to be drawn towards
            return Capabilities(starts=False, simulated_delay=settings.simulated_delay)
        gradients = self._sampler.guides and isinstance(self._strong.denoiser, Differentiable)
        return Capabilities(gradients=gradients, simulated_delay=settings.simulated_delay)

    def encode(self, observation: Observation, weak: bool = True, committed: Array | None = None) -> Encoded:
        """Run the observation encoders, once a decision.

        Args:
            observation, weak: as of :meth:`GraphPolicy.encode`.
            committed: ``(To - 1 + d, D)``, first rows of every chunk, task units: they are executed whatever is
                decided. The policy takes those of the longest delay that it was trained for. None: there are none.

        Raises:
            ObservationError: a feature is missing, or has another shape than the task says.
            DecodingError: rows are given, and the policy was not trained for a delay.
        """
        settings, past = self._bundle.settings, self._task.observation_steps - 1
        if committed is not None and not settings.simulated_delay:
            raise DecodingError(
                f"{len(committed)} committed rows are given to bundle '{self._bundle.name}', which was trained for no "
                "delay; valid is none, or a bundle of bid train --simulated-delay"
            )
        if committed is None or len(committed) <= past:
            return super().encode(observation, weak)
        committed = committed[: past + settings.simulated_delay]
        if not settings.roll_forward:
            return replace(super().encode(observation, weak), committed=committed)
        rolled = replace(observation, values=roll_forward(self._task, observation.values, committed))
        return replace(super().encode(rolled, weak), committed=committed, delay=len(committed) - past)

    def prefix(self, encoded: Encoded) -> Prefix | None:
        """Return the rows that are given clean with an observation. None: the policy takes none."""
        if self._bundle.settings.clean_step is None:
            return None
        rows, count = np.zeros((self._task.horizon, self._task.action_dim)), 0
        if encoded.committed is not None:
            count = len(encoded.committed)
            rows[:count] = encoded.committed - encoded.anchor
        return Prefix(self._bundle.action.normalise(rows)[None], np.array([count], dtype=np.int64))

    def _encoded(self, feeds: Mapping[str, NDArray[Any]], weak: bool) -> tuple[Any, Any]:
        first = self._strong.encoder.run(feeds)
        if not weak or self._weak is None:
            return first, None
        return first, first if self._weak.encoder is self._strong.encoder else self._weak.encoder.run(feeds)

    def sample(
        self,
        encoded: Encoded,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
        guidance: Guidance | None = None,
    ) -> tuple[Array, Array | None]:
        """Sample chunks in task units. Arguments and result as of :meth:`bid_ros.policy.base.Policy.sample`, but for:

        Args:
            rng: source of the noise, first of the strong, then of the weak samples.
            start_mode: see :meth:`bid_ros.policy.diffusion.sampler.Sampler.run`.
            guidance: what the strong samples are drawn towards. Needs a runtime with gradients.

        Raises:
            DecodingError: a count is not valid, or weak samples are asked for that were not encoded.
        """
        first = None if start is None else self._bundle.action.normalise(start - encoded.anchor)
        towards, prefix = None if guidance is None else self._guided(encoded, guidance), self.prefix(encoded)

        def draw(networks: _Networks, condition: NDArray[np.float32], count: int) -> Array:
            shape = (self._sampler.noises, count, self._task.horizon, self._task.action_dim)
            noise, denoise = rng.standard_normal(shape, dtype=np.float32), towards if networks is self._strong else None
            if networks.sampler is not None and start_mode == "noise" and denoise is None:
                result = networks.sampler.run({"noise": noise, "condition": condition, **sampler_feeds(prefix)})
            else:
                result = self._sampler.run(denoise or networks.predict(condition, prefix), noise, first, start_mode)
            return encoded.place(self._bundle.action.denormalise(result))

        return self._drawn(encoded, strong, weak, draw)

    def _guided(self, encoded: Encoded, guidance: Guidance) -> Denoise:
        denoiser = self._strong.denoiser
        if not isinstance(denoiser, Differentiable) or not self._sampler.guides:
            raise DecodingError(
                f"guided samples need gradients, which runtime '{self.runtime}' has not; valid: torch, not with rk4"
            )
        target = self._bundle.action.normalise(guidance.target - encoded.anchor)
        further = {} if self._bundle.settings.clean_step is None else {"prefix_rows": np.zeros(1, dtype=np.int64)}
        return guided(denoiser, encoded.strong, self._sampler, target, guidance.weights, guidance.clip, further)

    def warm_up(self, samples: int) -> None:
        """Run every network once, for one sample and for ``samples``, so that no decision has to wait for compiling."""
        encoded = self.encode(blank_observation(self._task))
        start = self._bundle.action.denormalise(np.zeros((self._task.horizon, self._task.action_dim)))
        modes: set[StartMode] = {"noise"}
        if self._strong.sampler is not None:
            modes.add("renoise")  # which the denoiser serves
        for count, mode in product({1, samples}, modes):
            self.sample(encoded, count, count if self.has_weak else 0, np.random.default_rng(0), start, mode)
        if self.capabilities.gradients:
            free = Guidance(start, np.zeros(self._task.horizon), 0.0)
            self.sample(encoded, 1, 0, np.random.default_rng(0), guidance=free)


class _Networks:
    """The graphs of one policy. Their inputs and outputs are checked.

    ``prefix``: whether they take rows that are given clean. ``encoder``: another policy's, to share it.
    """

    def __init__(
        self,
        files: Graphs,
        task: Task,
        runtime: Runtime,
        stepwise: Sampler,
        prefix: bool,
        encoder: ObservationEncoder | None = None,
    ) -> None:
        self.encoder = encoder or ObservationEncoder(files, task, runtime)
        self.denoiser: Graph = runtime.load(files["denoiser"])
        self.sampler: Graph | None = None
        chunk = None, task.horizon, task.action_dim
        condition = TensorSpec((1, output_width(self.encoder.graph.output)), FLOAT)
        inputs = {
            "sample": TensorSpec(chunk, FLOAT),
            "step": TensorSpec((1,), np.dtype(np.int64)),
            "condition": condition,
        }
        count = {"prefix_rows": TensorSpec((1,), np.dtype(np.int64))} if prefix else {}
        check_graph(files["denoiser"].name, self.denoiser, inputs | count, TensorSpec(chunk, FLOAT))
        if isinstance(runtime, WholeSampling) and not prefix:
            self.sampler = runtime.sampling(self.denoiser, stepwise)
        elif "sampler" in files:
            self.sampler = runtime.load(files["sampler"])
            inputs = {"noise": TensorSpec((stepwise.noises, *chunk), FLOAT), "condition": condition}
            if prefix:
                inputs["prefix"] = TensorSpec((1, *chunk[1:]), FLOAT)
            check_graph(files["sampler"].name, self.sampler, inputs | count, TensorSpec(chunk, FLOAT))
            self._check_sampler(files["sampler"].name, self.sampler, stepwise, task, prefix)

    def _check_sampler(self, name: str, sampler: Graph, stepwise: Sampler, task: Task, prefix: bool) -> None:
        """Raise BundleError if the graph of the whole sampling was made for other settings: they are inside it."""
        rng, size = np.random.default_rng(0), sampler.inputs["condition"].shape[-1] or 1
        noise = rng.standard_normal((stepwise.noises, 1, task.horizon, task.action_dim), dtype=np.float32)
        condition = rng.standard_normal((1, size), dtype=np.float32)
        given = Prefix(noise[0] / 2, np.array([1], dtype=np.int64)) if prefix else None
        expected = stepwise.run(self.predict(condition, given), noise)
        found = sampler.run({"noise": noise, "condition": condition, **sampler_feeds(given)})
        if not np.allclose(found, expected, atol=SAMPLER_TOLERANCE):
            raise BundleError(
                f"graph {name} does not sample as the section 'diffusion' of bundle.yaml says; export the bundle again"
            )

    def predict(self, condition: NDArray[np.float32], prefix: Prefix | None = None) -> Denoise:
        """Return the denoiser as a function of sample and step."""
        return predicting(self.denoiser, condition, prefix)


def predicting(denoiser: Graph, condition: NDArray[np.float32], prefix: Prefix | None) -> Denoise:
    """Return the graph ``denoiser`` as a function of sample and step. A policy that takes a prefix is given one."""
    if prefix is None:
        return lambda sample, step: denoiser.run({"sample": sample, "step": step, "condition": condition})
    feeds: dict[str, NDArray[Any]] = {"condition": condition, "prefix_rows": prefix.count}
    return lambda sample, step: denoiser.run({"sample": prefix.put(sample), "step": step, **feeds})


def sampler_feeds(prefix: Prefix | None) -> dict[str, NDArray[Any]]:
    """Return what the graph ``sampler`` is fed of a prefix."""
    return {} if prefix is None else {"prefix": prefix.rows, "prefix_rows": prefix.count}
