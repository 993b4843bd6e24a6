"""Bidirectional Decoding for many environments at once, in torch: as :func:`bid_ros.decoding.select` for each of them.

For evaluations that step many simulators together. It computes in float64 on the device of the samples. PyTorch is
imported when a distance is computed: nothing else of this package needs it.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.bid import USES_POSITIVE, check_shapes, combine, first_compared, step_weights, used
from bid_ros.decoding.config import BidConfig, Metric

if TYPE_CHECKING:
    from torch import Tensor

_DIMENSIONS = {"strong": "(E, N, H, D)", "weak": "(E, N, H, D)", "previous": "(E, H - e, D)"}


@dataclass(frozen=True, eq=False)
class BatchSelection:
    """The result of :func:`select_batch`: what :class:`bid_ros.decoding.Selection` has, by environment.

    Attributes:
        index: ``(E,)``, the chosen row of each environment's samples.
        backward, forward, total: ``(E, N)``, criteria; NaN where trimmed.
        kept: ``(E, N)``, whether the candidate could be chosen.
    """

    index: "Tensor"
    backward: "Tensor"
    forward: "Tensor"
    total: "Tensor"
    kept: "Tensor"


def select_batch(
    strong: "Tensor",
    weak: "Tensor | None",
    previous: "Tensor | None",
    config: BidConfig | None = None,
    continues: "Tensor | None" = None,
) -> BatchSelection:
    """Choose one of the strong samples of each environment: row ``index[i]`` of ``strong[i]`` is the decision of ``i``.

    Args:
        strong: ``(E, N, H, D)``, samples of E environments, as :func:`bid_ros.decoding.select` takes those of one.
        weak: samples of the weak policy, same shape. None: the negative term is 0.
        previous: ``(E, H - e, D)``, the previous decisions from row ``e`` on. None: no environment has one.
        config: settings, the same for all environments.
        continues: ``(E,)`` of bool, whether an environment has a previous decision; one that was just reset has none.
            None: all have, if ``previous`` is given.

    Raises:
        DecodingError: as :func:`bid_ros.decoding.select`, or something is no tensor, or of another number of
            environments.
    """
    config = config or BidConfig()
    chunks = _checked("strong", strong)
    others = None if weak is None else _checked("weak", weak)
    no_rows = previous is None or getattr(previous, "shape", ())[1:2] == (0,)
    before = None if no_rows else _checked("previous", previous)
    for name, given in (("weak", others), ("previous", before), ("continues", continues)):
        if given is not None and len(given) != len(chunks):
            raise DecodingError(f"{name} has {len(given)} environments; valid is {len(chunks)}, as strong has")
    check_shapes(chunks, others, before, config, axes=1)
    if before is None or continues is None:
        return _select(chunks, others, before, config)
    found: dict[str, Tensor] = {}
    for rows, own in ((continues.bool(), before), (~continues.bool(), None)):
        if rows.any():
            weaker, last = (None if given is None else given[rows] for given in (others, own))
            part = _select(chunks[rows], weaker, last, config)
            for name in (item.name for item in fields(part)):
                value = getattr(part, name)
                found.setdefault(name, value.new_empty((len(chunks), *value.shape[1:])))[rows] = value
    return BatchSelection(**found)


def _checked(name: str, values: "Tensor") -> "Tensor":
    """Return a tensor as float64, without its gradient. Raises DecodingError as :func:`select_batch`."""
    valid = _DIMENSIONS[name]
    if not hasattr(values, "detach"):
        raise DecodingError(f"{name} is of type {type(values).__name__}; valid is a tensor of torch, {valid}")
    if values.ndim != valid.count(",") + 1 or 0 in values.shape:
        raise DecodingError(f"{name} has shape {tuple(values.shape)}; valid is {valid}, none of them 0")
    tensor = values.detach().double()
    if not bool(tensor.isfinite().all()):
        raise DecodingError(f"{name} holds {int((~tensor.isfinite()).sum())} values that are not finite")
    return tensor


def _select(chunks: "Tensor", others: "Tensor | None", before: "Tensor | None", config: BidConfig) -> BatchSelection:
    """Select where all environments have a previous decision, or none."""
    chunks, others, before = used(chunks, others, before, chunks.new_tensor, config)
    first, backward = first_compared(config), chunks.new_zeros(chunks.shape[:2])
    if before is None or before.shape[1] <= first:
        return _scored(chunks, others, backward, backward, False, config)
    rows, overlap = slice(first, before.shape[1]), before[:, None, first:]
    weights = chunks.new_tensor(step_weights(overlap.shape[2], config))
    backward = _coherence(chunks[:, :, rows], overlap, config.metric) @ weights
    weaker = backward if others is None else _coherence(others[:, :, rows], overlap, config.metric) @ weights
    return _scored(chunks, others, backward, weaker, True, config)


def _scored(
    chunks: "Tensor", others: "Tensor | None", backward: "Tensor", weaker: "Tensor", coherent: bool, config: BidConfig
) -> BatchSelection:
    """Score and choose; ``backward`` and ``weaker`` ``(E, N)`` are B of strong and weak samples."""
    if config.variant == "paper":
        return _paper(chunks, others, backward, weaker, coherent, config)
    samples, steps = chunks.shape[1:3]
    count = samples // config.mode_size if coherent else samples
    near, kept = count // 2, _most_coherent(backward, count)
    own = _rows(chunks, kept)
    contrast = backward.new_zeros(kept.shape)
    if config.terms in USES_POSITIVE:
        distances = _pairs(own, own, config.metric)
        contrast = _smallest_sum(distances, near + 1) - distances.amin(dim=-1)  # without that to itself
    if others is not None:
        distances = _pairs(own, _rows(others, _most_coherent(weaker, count)), config.metric)
        # The published code reads this matrix transposed, as bid.py says.
        contrast = contrast - _smallest_sum(distances if config.variant == "corrected" else distances.mT, near)
    contrast = contrast / (near * steps)
    scores = combine(backward.gather(1, kept), contrast, coherent, steps, config)
    trimmed = backward.new_full(backward.shape, float("nan"))
    forward, total = (trimmed.scatter(1, kept, part) for part in (contrast, scores))
    index = kept.gather(1, scores.argmin(dim=1, keepdim=True))[:, 0]
    return BatchSelection(index, backward, forward, total, ~total.isnan())


def _paper(
    chunks: "Tensor", others: "Tensor | None", backward: "Tensor", weaker: "Tensor", coherent: bool, config: BidConfig
) -> BatchSelection:
    """Eqs. 5 and 6: B + F, smallest over all N."""
    forward = backward.new_zeros(backward.shape)
    if config.terms in USES_POSITIVE:
        forward = _paper_term(chunks, chunks, backward, coherent, config)
    if others is not None:
        forward = forward - _paper_term(chunks, others, weaker, coherent, config)
    forward = forward / chunks.shape[1]
    total = backward + forward
    return BatchSelection(total.argmin(dim=1), backward, forward, total, total.isfinite())


def _paper_term(strong: "Tensor", others: "Tensor", backward: "Tensor", coherent: bool, config: BidConfig) -> "Tensor":
    """Sum of the distances to ``others``, as in bid.py. A strong sample has distance 0 to itself."""
    samples = others.shape[1]
    count = config.mode_size if coherent else samples
    nearest, itself = config.trim == "nearest", others is strong
    kept = _most_coherent(backward, samples if nearest else count)
    distances = _pairs(strong, _rows(others, kept), config.metric)
    if itself:
        distances = distances.scatter(1, kept[:, None], 0.0)
    return _smallest_sum(distances, count + 1 if nearest and itself else count)


def _most_coherent(backward: "Tensor", count: int) -> "Tensor":
    """Indices ``(E, count)`` of the smallest values, ascending."""
    return backward.argsort(dim=1, stable=True)[:, :count]


def _rows(chunks: "Tensor", kept: "Tensor") -> "Tensor":
    """Return ``(E, K, H, D)``: each environment's own chunks ``kept`` ``(E, K)``."""
    return chunks.take_along_dim(kept[..., None, None], dim=1)


def _smallest_sum(distances: "Tensor", count: int) -> "Tensor":
    if count < distances.shape[-1]:
        distances = distances.topk(count, dim=-1, largest=False).values
    return distances.sum(dim=-1)


def _coherence(chunks: "Tensor", previous: "Tensor", metric: Metric) -> "Tensor":
    """Return ``(E, N, T)``: distance of each action to the previous decision's ``(E, 1, T, D)``."""
    if metric == "cosine":
        return 1.0 - (_directions(chunks) * _directions(previous)).sum(dim=-1)
    difference = chunks - previous
    return difference.abs().sum(dim=-1) if metric == "l1" else difference.square().sum(dim=-1).sqrt()


def _pairs(first: "Tensor", second: "Tensor", metric: Metric) -> "Tensor":
    """Return ``(E, A, B)``: distances of chunks ``(E, A, H, D)`` to ``(E, B, H, D)``, summed over steps."""
    import torch

    if metric == "cosine":
        return first.shape[2] - _directions(first).flatten(2) @ _directions(second).flatten(2).mT
    steps = (first.transpose(1, 2), second.transpose(1, 2))
    # By subtraction: products would lose digits between samples that are nearly equal.
    return torch.cdist(*steps, p=1.0 if metric == "l1" else 2.0, compute_mode="donot_use_mm_for_euclid_dist").sum(dim=1)


def _directions(actions: "Tensor") -> "Tensor":
    """Scale actions to length 1. A zero vector stays zero, so its cosine distance is always 1."""
    lengths = actions.square().sum(dim=-1, keepdim=True).sqrt()
    return (actions / lengths).where(lengths > 0, 0.0)
