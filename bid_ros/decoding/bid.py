"""Bidirectional Decoding: choose the sampled chunk that best continues what was decided before.

Source: Liu et al., "Bidirectional Decoding: Improving Action Chunking via Guided Test-Time Sampling", ICLR 2025,
Algorithm 1, and the two published versions of its code. Symbols and their names in the code:
``docs/reference/decoders.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.arrays import as_array
from bid_ros.decoding.config import BidConfig
from bid_ros.decoding.criteria import Array, backward_coherence, pair_distances, smallest_sum, smallest_sum_of_others
from bid_ros.decoding.prefix import prefix_weights

USES_POSITIVE: Final = ("bid", "positive", "contrast")
USES_NEGATIVE: Final = ("bid", "negative", "contrast")


@dataclass(frozen=True, eq=False)
class Selection:
    """The result of :func:`select`. Arrays have one value per candidate, ``(N,)``.

    Attributes:
        index: the chosen row of ``strong``.
        backward: B, coherence with the previous decision; 0 without one.
        forward: F, the positive minus the negative term; NaN where trimmed.
        total: the value that was minimised; NaN where trimmed.
        kept: whether the candidate could be chosen. Variant ``paper`` chooses among all, so all are True.
    """

    index: int
    backward: Array
    forward: Array
    total: Array
    kept: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Checked and weighted chunks ``(N, H, D)``, their B ``(N,)``, and whether a previous decision overlaps."""

    strong: Array
    weak: Array | None
    strong_backward: Array
    weak_backward: Array
    coherent: bool


def select(
    strong: ArrayLike, weak: ArrayLike | None, previous: ArrayLike | None, config: BidConfig | None = None
) -> Selection:
    """Choose one of the strong samples.

    Arrays may be of NumPy or tensors of torch, on any device. Many environments at once: :func:`select_batch`.

    Args:
        strong: ``(N, H, D)``, full predictions of the strong policy, past steps included, raw action units.
        weak: samples of the weak policy, same shape. None: the negative term is 0.
        previous: ``(H - e, D)``, the previous decision from its row ``e`` on. So ``previous[i]`` and row ``i`` of a
            prediction are the same instant, in the same frame. None (or no rows): B = 0 and nothing is trimmed. The
            same holds if the previous decision ends before the steps that are compared.
        config: settings. ``executed`` is the ``e`` of ``previous``.

    Returns:
        The chosen index and the criteria. Of equally good candidates the most coherent one is chosen, then the first.

    Raises:
        DecodingError: shapes disagree, a value is not finite, or N < 2 K in the reference and corrected variants.
    """
    config = config or BidConfig()
    candidates = _candidates(strong, weak, previous, config)
    if config.variant == "paper":
        return _select_paper(candidates, config)
    return _select_reference(candidates, config)


def _select_paper(candidates: _Candidates, config: BidConfig) -> Selection:
    """Eqs. 5 and 6: B + F, smallest over all N."""
    strong, backward = candidates.strong, candidates.strong_backward
    samples = strong.shape[0]
    forward = np.zeros(samples)
    if config.terms in USES_POSITIVE:
        forward = _paper_term(strong, strong, backward, candidates.coherent, config)
    if candidates.weak is not None:
        forward -= _paper_term(strong, candidates.weak, candidates.weak_backward, candidates.coherent, config)
    forward /= samples
    total = backward + forward
    return Selection(int(np.argmin(total)), backward, forward, total, np.ones(samples, dtype=np.bool_))


def _paper_term(strong: Array, others: Array, backward: Array, coherent: bool, config: BidConfig) -> Array:
    """Sum of the distances to ``others``. A strong sample has distance 0 to itself, so it need not be left out."""
    count = config.mode_size if coherent else others.shape[0]
    nearest, itself = config.trim == "nearest", others is strong
    kept = np.arange(others.shape[0]) if nearest else _most_coherent(backward, count)
    distances = pair_distances(strong, others[kept], config.metric)
    if itself:
        distances[kept, np.arange(kept.size)] = 0.0
    return smallest_sum(distances, count + 1 if nearest and itself else count)


def _select_reference(candidates: _Candidates, config: BidConfig) -> Selection:
    """The published code: keep K' = N // K samples, average distances over all H steps, choose among the kept."""
    backward = candidates.strong_backward
    samples, steps = candidates.strong.shape[:2]
    count = samples // config.mode_size if candidates.coherent else samples
    kept = _most_coherent(backward, count)
    chunks, near = candidates.strong[kept], count // 2
    contrast = np.zeros(count)
    if config.terms in USES_POSITIVE:
        contrast = smallest_sum_of_others(pair_distances(chunks, chunks, config.metric), near)
    if candidates.weak is not None:
        others = candidates.weak[_most_coherent(candidates.weak_backward, count)]
        distances = pair_distances(chunks, others, config.metric)
        # The published code reads this matrix transposed: row j belongs to the j-th weak sample, not candidate.
        contrast -= smallest_sum(distances if config.variant == "corrected" else distances.T, near)
    contrast /= near * steps
    forward, total = np.full(samples, np.nan), np.full(samples, np.nan)
    forward[kept] = contrast
    total[kept] = combine(backward[kept], contrast, candidates.coherent, steps, config)
    index = int(kept[np.argmin(total[kept])])
    return Selection(index, backward, forward, total, ~np.isnan(total))


def combine(backward: Any, forward: Any, coherent: bool, steps: int, config: BidConfig) -> Any:
    """B + F in version 1. Later versions weight the two by how much of the previous decision is left.

    Arrays or tensors; ``steps`` is H, ``coherent`` whether there is a previous decision.
    """
    if config.terms == "backward":
        return backward
    if config.variant == "reference_v1":
        return backward + forward
    reach = (steps * config.decay) ** 2
    ratio = reach / (reach + config.executed**2) if coherent else 0.0
    return ratio * backward + (1.0 - ratio) * forward


def _most_coherent(backward: Array, count: int) -> NDArray[np.intp]:
    """Indices of the ``count`` smallest values, ascending."""
    return np.argsort(backward, kind="stable")[:count]


def _candidates(
    strong: ArrayLike, weak: ArrayLike | None, previous: ArrayLike | None, config: BidConfig
) -> _Candidates:
    chunks = _finite("strong", strong, 3)
    others = None if weak is None else _finite("weak", weak, 3)
    before = None if previous is None or len(as_array(previous)) == 0 else _finite("previous", previous, 2)
    check_shapes(chunks, others, before, config)
    chunks, others, before = used(chunks, others, before, np.asarray, config)
    first, none = first_compared(config), np.zeros(chunks.shape[0])
    if before is None or before.shape[0] <= first:
        return _Candidates(chunks, others, none, none, coherent=False)
    decays = step_weights(before.shape[0] - first, config)
    overlap, rows = before[first:], slice(first, before.shape[0])
    strong_backward = backward_coherence(chunks[:, rows], overlap, decays, config.metric)
    if others is not None:
        none = backward_coherence(others[:, rows], overlap, decays, config.metric)
    return _Candidates(chunks, others, strong_backward, none, coherent=True)


def used(strong: Any, weak: Any, previous: Any, array: Callable[[Any], Any], config: BidConfig) -> tuple[Any, Any, Any]:
    """Return what the terms of a setting use of the chunks, None for what they do not, times its weights.

    Arrays or tensors; ``array`` makes one of a tuple of numbers.
    """
    kept = (
        strong,
        weak if config.terms in USES_NEGATIVE else None,
        None if config.terms == "contrast" else previous,
    )
    if config.weights is None:
        return kept
    scale = array(config.weights)
    first, second, third = (None if item is None else item * scale for item in kept)
    return first, second, third


def first_compared(config: BidConfig) -> int:
    """Return the first row of a prediction that B compares: 0, or that of the current step."""
    from_current = config.variant in ("reference_v2", "corrected") or config.delay is not None
    return config.observation_steps - 1 if from_current else 0


def step_weights(count: int, config: BidConfig) -> Array:
    """Return the weights ``(count,)`` of the compared steps in B."""
    weights: Array = config.decay ** np.arange(count, dtype=np.float64)
    if config.delay is not None:
        weights = prefix_weights(config.delay, count)
    return weights if config.variant == "paper" else weights / weights.sum()


def _finite(name: str, values: ArrayLike, dimensions: int) -> Array:
    array = as_array(values)
    if array.ndim != dimensions or 0 in array.shape:
        wanted = "(N, H, D)" if dimensions == 3 else "(H - e, D)"
        raise DecodingError(f"{name} has shape {array.shape}; valid is {wanted}, none of them 0")
    if not np.isfinite(array).all():
        raise DecodingError(f"{name} holds {np.count_nonzero(~np.isfinite(array))} values that are not finite")
    return array


def check_shapes(strong: Any, weak: Any, previous: Any, config: BidConfig, axes: int = 0) -> None:
    """Raise DecodingError unless arrays or tensors fit the settings and each other beyond their first ``axes``."""
    samples, steps, values = wanted = tuple(strong.shape[axes:])
    if weak is not None and tuple(weak.shape[axes:]) != wanted:
        raise DecodingError(f"weak has shape {tuple(weak.shape[axes:])}; valid is that of strong, {wanted}")
    if previous is not None and tuple(previous.shape[axes:]) != (steps - config.executed, values):
        raise DecodingError(
            f"previous has shape {tuple(previous.shape[axes:])}; valid is {(steps - config.executed, values)}: "
            f"{steps} rows less {config.executed} executed"
        )
    if config.observation_steps > steps:
        raise DecodingError(
            f"observation_steps is {config.observation_steps}; valid is at most the {steps} rows of a chunk"
        )
    if config.delay is not None and config.delay > steps - config.observation_steps:
        raise DecodingError(
            f"delay is {config.delay} steps; valid is at most {steps - config.observation_steps}, "
            f"so that a row of the chunk is still executed"
        )
    if config.weights is not None and len(config.weights) != values:
        raise DecodingError(f"there are {len(config.weights)} weights; valid is one for each of the {values} values")
    if config.variant != "paper" and samples < 2 * config.mode_size:
        raise DecodingError(
            f"{samples} samples are fewer than twice the mode size {config.mode_size}; "
            f"valid for variant '{config.variant}' is a mode size of at most {samples // 2}"
        )
