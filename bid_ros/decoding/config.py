"""Settings of Bidirectional Decoding. They are checked when they are created."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from bid_ros.core.errors import DecodingError

Variant = Literal["paper", "reference_v1", "reference_v2", "corrected"]
Metric = Literal["l2", "l1", "cosine"]
Trim = Literal["previous", "nearest"]
Terms = Literal["bid", "backward", "positive", "negative", "contrast"]

VARIANTS: Final = get_args(Variant)
METRICS: Final = get_args(Metric)
TRIMS: Final = get_args(Trim)
TERMS: Final = get_args(Terms)


@dataclass(frozen=True)
class Criterion:
    """What :class:`BidConfig` and :class:`bid_ros.decoding.DecoderConfig` have in common."""

    variant: Variant = "corrected"
    decay: float = 0.5
    metric: Metric = "l2"
    trim: Trim = "previous"
    weights: tuple[float, ...] | None = None
    terms: Terms = "bid"


@dataclass(frozen=True)
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

    mode_size: int = 3
    executed: int = 1
    observation_steps: int = 1
    delay: int | None = None

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, VARIANTS)
        check_choice("metric", self.metric, METRICS)
        check_choice("trim", self.trim, TRIMS)
        check_choice("terms", self.terms, TERMS)
        check_count("mode_size", self.mode_size, 1)
        check_count("executed", self.executed, 0)
        check_count("observation_steps", self.observation_steps, 1)
        if self.delay is not None:
            check_count("delay", self.delay, 0)
        if not 0 < self.decay <= 1:
            raise DecodingError(f"decay is {self.decay}; valid is above 0 and up to 1")
        if self.trim == "nearest" and self.variant != "paper":
            raise DecodingError(f"trim 'nearest' is asked of variant '{self.variant}'; only variant 'paper' has it")
        object.__setattr__(self, "weights", checked_weights(self.weights))


def check_choice(name: str, value: str, valid: tuple[str, ...]) -> None:
    """Raise DecodingError unless ``value`` is one of ``valid``."""
    if value not in valid:
        raise DecodingError(f"{name} is '{value}'; valid are {', '.join(valid)}")


def check_count(name: str, value: int, least: int) -> None:
    """Raise DecodingError unless ``value`` is a whole number of at least ``least``."""
    if isinstance(value, bool) or int(value) != value or value < least:
        raise DecodingError(f"{name} is {value}; valid is a whole number of at least {least}")


def checked_weights(weights: Iterable[float] | None) -> tuple[float, ...] | None:
    """Return feature weights as a tuple; DecodingError unless they are finite, not negative and not all zero."""
    if weights is None:
        return None
    values = tuple(float(weight) for weight in weights)
    if not all(math.isfinite(value) and value >= 0 for value in values) or not any(values):
        raise DecodingError(f"weights are {values}; valid are finite numbers of at least 0, not all 0")
    return values
