"""Settings of Bidirectional Decoding. They are checked when they are created."""

from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator, Field

from bid_ros.core.errors import DecodingError
from bid_ros.core.settings import Count, Share, settings

Variant = Literal["paper", "reference_v1", "reference_v2", "corrected"]
Metric = Literal["l2", "l1", "cosine"]
Trim = Literal["previous", "nearest"]
Terms = Literal["bid", "backward", "positive", "negative", "contrast"]

VARIANTS: Final = get_args(Variant)
METRICS: Final = get_args(Metric)
TRIMS: Final = get_args(Trim)
TERMS: Final = get_args(Terms)

Steps = Annotated[int, Field(ge=0)]
Weights = Annotated[tuple[float, ...], BeforeValidator(lambda weights: tuple(map(float, weights)))]
"""Any sequence of numbers is taken, an array too."""


@settings(error=DecodingError)
class Criterion:
    """What :class:`BidConfig` and :class:`bid_ros.decoding.DecoderConfig` have in common."""

    variant: Variant = "corrected"
    decay: Share = 0.5
    metric: Metric = "l2"
    trim: Trim = "previous"
    weights: Weights | None = None
    terms: Terms = "bid"

    def __post_init__(self) -> None:
        if self.trim == "nearest" and self.variant != "paper":
            raise DecodingError(f"trim 'nearest' is asked of variant '{self.variant}'; only variant 'paper' has it")
        if self.weights is not None and not (any(self.weights) and min(self.weights) >= 0):
            raise DecodingError(f"weights are {self.weights}; valid are finite numbers of at least 0, not all 0")


@settings(error=DecodingError)
class BidConfig(Criterion):
    """How :func:`bid_ros.decoding.select` scores candidates.

    Attributes:
        variant: ``paper`` (Liu et al., "Bidirectional Decoding", ICLR 2025, Eqs. 5 and 6), ``reference_v1`` and
            ``reference_v2`` (the two versions of the published code) or ``corrected`` (``reference_v2`` without its
            transposed negative distances).
        mode_size: K, number of samples that a mode is judged by.
        decay: rho, weight of an overlapping step relative to the one before it.
        metric: d, distance between two actions: ``l2``, ``l1`` or ``cosine`` (one minus the cosine; 1 if a vector is
            zero).
        executed: e, steps of the grid that passed since the previous decision.
        observation_steps: To; row ``To - 1`` of a prediction is the current step, the rows before it are past.
        trim: only variant ``paper`` reads it. ``previous`` keeps the K samples that best continue the previous decision
            (Algorithm 1). ``nearest`` sums each candidate's own K smallest distances (the text below Eq. 6).
        weights: factor of each action feature, ``(D,)``, applied before any distance; None means 1.
        terms: ``bid`` is the whole criterion. Ablations: ``backward`` is B alone, ``positive`` and ``negative`` are B
            with one of the forward terms, ``contrast`` is both forward terms with B = 0 and nothing trimmed.
        delay: q, steps that are executed before this decision arrives. None weights the overlap by ``rho^i``. A number
            weights it from the current step on by :func:`bid_ros.decoding.prefix.prefix_weights`.

    Raises:
        DecodingError: for a value outside its range.
    """

    mode_size: Count = 3
    executed: Steps = 1
    observation_steps: Count = 1
    delay: Steps | None = None
