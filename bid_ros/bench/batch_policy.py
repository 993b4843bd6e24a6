"""One network call for many environments.

The graphs of a bundle take one condition for all rows of a call (:mod:`bid_ros.policy.diffusion.policy`). Their layers
accept a condition per row; only the fixed extent of two inputs forbids it. At load time this module frees these extents
in a copy of the graph and checks the copy against the original. A graph that fails the check is run once per
environment, which is slower but gives the same result.

Every call has one of two fixed numbers of rows. The last call is padded. So the result of a row does not depend on how
many environments share the call, whatever kernels a runtime chooses for other sizes, and a runtime compiles only two
shapes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.extras import extra
from bid_ros.core.task import Task
from bid_ros.decoding import StartMode
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import DIFFUSION
from bid_ros.policy.committed import Prefix
from bid_ros.policy.correction import Correction
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.diffusion.sampler import Denoise, Sampler, Samples
from bid_ros.policy.draft import Draft
from bid_ros.policy.registry import load_policy
from bid_ros.policy.runtimes.base import Graph
from bid_ros.policy.runtimes.registry import build_runtime
from bid_ros.policy.spaces.policy import SpacedPolicy
from bid_ros.policy.spaces.view import network_task

Array = NDArray[np.float64]
FEW_ROWS: Final = 16
MANY_ROWS: Final = 128
"""Rows of a call. On one core of an AMD EPYC a row of a denoiser of widths 32, 64, 128 took OpenVINO 0.043 ms in calls
of 16 rows, 0.053 of 64, 0.039 of 128 and 256. Decoders of few samples would leave most of 128 empty and use 16."""
TOLERANCE: Final = 1e-3  # of the check at load time; runtimes differ by rounding only, far below


class BatchPolicy:
    """A policy that samples for many environments at once. Each gets the same result as from :class:`Policy`.

    Only a diffusion policy shares its network calls. Others sample for one environment after the other. Where the
    bundle has a space, networks meet each environment's own terms: starts and chunks are converted one by one.

    Args:
        bundle: a checked bundle.
        task: the task it was checked against.
        runtime: name for :func:`bid_ros.policy.runtimes.registry.build_runtime`.
        correction: corrects what is executed; None: nothing does.

    Raises:
        BundleError: the bundle cannot be used.
    """

    def __init__(self, bundle: Bundle, task: Task, runtime: str = "auto", correction: Correction | None = None) -> None:
        self.bundle, self._task, self.correction = bundle, task, correction
        self.unbatched = load_policy(bundle, task, runtime)  # serves one environment, as the policy node does
        self._sampler: Sampler | None = None
        self._strong: _RowDenoiser | None = None
        self._weak: _RowDenoiser | None = None
        if bundle.family != DIFFUSION:
            return  # another family samples in its own way
        if bundle.space is not None:
            self._task = task = network_task(bundle.space, task)
        self._sampler = Sampler(bundle.settings)
        self._strong = _RowDenoiser(bundle.strong["denoiser"], task, runtime)
        if bundle.weak is not None:
            self._weak = _RowDenoiser(bundle.weak["denoiser"], task, runtime)

    @property
    def batched(self) -> bool:
        """Whether a network call serves several environments."""
        used = [item for item in (self._strong, self._weak) if item is not None]
        return bool(used) and all(item.opened is not None for item in used)

    def sample(self, drafts: Sequence[Draft]) -> list[tuple[Array, Array | None]]:
        """Return strong ``(N, H, D)`` and weak ``(M, H, D)`` or None of each draft, task units, in order.

        Each draft's generator gives first the noise of its strong, then that of its weak samples.
        """
        groups: dict[tuple[int, int, StartMode], list[int]] = {}
        results: dict[int, tuple[Array, Array | None]] = {}
        for index, draft in enumerate(drafts):
            if self._strong is None or draft.guidance is not None:  # each is drawn towards a target of its own
                results[index] = draft.sample(self.unbatched)
            else:
                groups.setdefault((draft.strong, draft.weak, draft.start_mode), []).append(index)
        for (strong, weak, _), members in groups.items():
            chosen = [self._in_network_terms(drafts[index]) for index in members]
            first = self._denoise(self._strong, [draft.encoded.strong for draft in chosen], chosen, strong)
            second: Sequence[Array | None] = [None] * len(members)
            if weak and self._weak is not None:
                conditions = [draft.encoded.weak for draft in chosen if draft.encoded.weak is not None]
                second = self._denoise(self._weak, conditions, chosen, weak)
            for index, ours, others in zip(members, first, second, strict=True):
                results[index] = self._in_task_terms(drafts[index], ours, others)
        return [results[index] for index in range(len(drafts))]

    def _prefix(self, drafts: Sequence[Draft]) -> Prefix | None:
        """Return what is given clean of each draft's chunks. None: the policy takes nothing."""
        if not isinstance(self.unbatched, DiffusionPolicy):
            return None
        found = [given for draft in drafts if (given := self.unbatched.prefix(draft.encoded)) is not None]
        if not found:
            return None
        return Prefix(np.concatenate([item.rows for item in found]), np.concatenate([item.count for item in found]))

    def _in_network_terms(self, draft: Draft) -> Draft:
        if not isinstance(self.unbatched, SpacedPolicy):
            return draft
        start = self.unbatched.start(draft.encoded, draft.start, draft.start_mode)
        return replace(draft, encoded=draft.encoded.network, start=start)

    def _in_task_terms(self, draft: Draft, strong: Array, weak: Array | None) -> tuple[Array, Array | None]:
        if not isinstance(self.unbatched, SpacedPolicy):
            return strong, weak
        return self.unbatched.place(draft.encoded, strong, weak)

    def _denoise(
        self,
        denoiser: _RowDenoiser | None,
        conditions: Sequence[NDArray[np.float32]],
        drafts: Sequence[Draft],
        count: int,
    ) -> list[Array]:
        """Sample as ``(N, E, H, D)``: the sampler then sees a start ``(E, H, D)`` of its own per environment."""
        action, sampler = self.bundle.action, self._sampler
        assert sampler is not None and denoiser is not None, "else no draft is in a group"
        shape = (sampler.noises, count, self._task.horizon, self._task.action_dim)
        noise = [draft.rng.standard_normal(shape, dtype=np.float32) for draft in drafts]
        stacked = np.ascontiguousarray(np.stack(noise, axis=2))
        start = None
        if drafts[0].start_mode != "noise":
            start = np.stack([action.normalise(d.start - d.encoded.anchor) for d in drafts if d.start is not None])
        predict = denoiser.for_conditions(np.concatenate(conditions), count, self._prefix(drafts))
        result = action.denormalise(sampler.run(predict, stacked, start, drafts[0].start_mode))
        return [draft.encoded.place(result[:, index]) for index, draft in enumerate(drafts)]


class _RowDenoiser:
    """A denoiser for many conditions. ``opened`` is the graph that serves several in one call, if there is one."""

    def __init__(self, path: Path, task: Task, runtime: str) -> None:
        loader = build_runtime(runtime)
        self._folder = tempfile.TemporaryDirectory(prefix="bid_bench_")  # a runtime may map the file
        copy = Path(self._folder.name) / path.name
        open_conditions(path, copy)
        self._original = loader.load(path)
        self.opened: Graph | None = None
        with suppress(Exception):  # every runtime has its own exceptions for shapes that do not fit
            self.opened = self._checked(loader.load(copy), task)

    def for_conditions(self, conditions: NDArray[np.float32], samples: int, prefix: Prefix | None = None) -> Denoise:
        """Return the network for samples ``(N, E, H, D)``, ``samples`` of each of the conditions ``(E, C)``."""
        feeds: dict[str, NDArray[Any]] = {"condition": conditions}
        if prefix is not None:
            feeds["prefix_rows"] = prefix.count
        if self.opened is None:
            predict = _each(self._original, feeds)
        else:
            tiled = {name: np.concatenate([value] * samples) for name, value in feeds.items()}
            predict = _together(self.opened, tiled, MANY_ROWS if samples >= 4 else FEW_ROWS)
        if prefix is None:
            return predict
        return lambda sample, step: predict(prefix.put(sample), step)

    def _checked(self, opened: Graph, task: Task) -> Graph | None:
        """Return a graph for several conditions, None if it differs from the original."""
        rng = np.random.default_rng(0)
        sample = rng.standard_normal((1, 2, task.horizon, task.action_dim), dtype=np.float32)
        size = self._original.inputs["condition"].shape[-1] or 1
        step, feeds = np.array([1], dtype=np.int64), {"condition": rng.standard_normal((2, size), dtype=np.float32)}
        if "prefix_rows" in self._original.inputs:
            feeds["prefix_rows"] = np.array([0, 1], dtype=np.int64)
        found = _together(opened, feeds, FEW_ROWS)(sample, step)
        expected = _each(self._original, feeds)(sample, step)
        return opened if np.allclose(found, expected, atol=TOLERANCE) else None


def _each(graph: Graph, feeds: Mapping[str, NDArray[Any]]) -> Denoise:
    """One call for each of the E rows of ``feeds``, as the graph was exported."""

    def predict(sample: Samples, step: NDArray[np.int64]) -> Samples:
        parts = []
        for index in range(sample.shape[1]):
            own = {name: value[index : index + 1] for name, value in feeds.items()}
            parts.append(graph.run({"sample": np.ascontiguousarray(sample[:, index]), "step": step, **own}))
        return np.stack(parts, axis=1)

    return predict


def _together(graph: Graph, feeds: Mapping[str, NDArray[Any]], rows: int) -> Denoise:
    """The network's prediction for samples ``(N, E, H, D)``, each with its own row of ``feeds``."""
    padding = -len(feeds["condition"]) % rows
    padded = {name: _padded(value, padding) for name, value in feeds.items()}

    def predict(sample: Samples, step: NDArray[np.int64]) -> Samples:
        shape, steps = sample.shape, np.repeat(step, rows)
        flat = _padded(sample.reshape(-1, *shape[2:]), padding)
        parts = [
            graph.run(
                {"sample": flat[at : at + rows], "step": steps}
                | {name: value[at : at + rows] for name, value in padded.items()}
            )
            for at in range(0, len(flat), rows)
        ]
        used: Samples = np.concatenate(parts)[: len(flat) - padding]
        return used.reshape(shape)

    return predict


def _padded(values: NDArray[Any], more: int) -> NDArray[Any]:
    return np.concatenate([values, np.zeros((more, *values.shape[1:]), values.dtype)])


def open_conditions(source: Path, target: Path) -> None:
    """Write a copy of a denoiser whose inputs beside ``sample`` have a row per sample, not one for all.

    Raises:
        BundleError: if the file is not an ONNX graph with these inputs.
    """
    with extra("bench", "the bench"):
        import onnx
    try:
        model = onnx.load(str(source))
    except Exception as error:  # exceptions of protobuf and onnx have no other common base
        raise BundleError(f"{source} is not an ONNX graph: {' '.join(str(error).split())}") from error
    inputs = {item.name: item.type.tensor_type.shape.dim for item in model.graph.input}
    if not {"sample", "step", "condition"} <= set(inputs):
        raise BundleError(f"{source} has the inputs {sorted(inputs)}; valid are sample, step and condition")
    samples = inputs["sample"][0].dim_param or "samples"
    for name in inputs.keys() - {"sample"}:
        inputs[name][0].Clear()
        inputs[name][0].dim_param = samples
    # Inferred shapes for one condition would contradict the new inputs.
    del model.graph.value_info[:]
    onnx.save(model, str(target))
