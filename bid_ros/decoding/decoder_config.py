"""Settings of all decoders. They are checked when they are created."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from bid_ros.core.errors import DecodingError
from bid_ros.core.settings import Count, Positive, Share, settings
from bid_ros.decoding.arrays import as_array
from bid_ros.decoding.config import BidConfig, Criterion, Steps

WarmStart = Literal["renoise", "clean"]
Memory = Literal["nearest", "between"]
ActionHorizon = Count | Literal["all"]
DEFAULT_MODE_SIZE: Final = 3
MOST_SAMPLES: Final = 256
"""Largest N that verbs, nodes and configuration files take. Memory and time of a decision grow with it."""
# A feature that spreads less than this in its own unit (m, rad, 1) did not vary in the training data.
SMALLEST_SPREAD: Final = 1e-6


@settings(error=DecodingError)
class LeadConfig:
    """How far the lead decoders shift a decision along the motion of its target.

    Attributes:
        time_s: time by which the arm is behind a moving target without them, s; see
            ``docs/reference/decoders.md`` for how to measure it.
        filter_s: time constant of the filter of the target's velocity, s.
        settled: a decision that still goes farther than this along the columns, in their unit (m), says nothing about
            the target's motion; one that goes nowhere says all.
        fastest: no target is taken to move faster than this along the columns, in their unit a second (m/s).
        columns: columns of an action along which targets move, for example x and y of its position;
            None: the first two.
        low, high: bounds that no shift crosses, one for each column; None: none.

    Raises:
        DecodingError: a value is outside its range, or there are not as many bounds as columns.
    """

    time_s: Annotated[float, Field(ge=0, le=1)] = 0.3
    filter_s: Annotated[float, Field(ge=0.01, le=10)] = 0.45
    settled: Positive = 0.03
    fastest: Positive = 0.1
    columns: tuple[Steps, ...] | None = None
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, bounds in (("low", self.low), ("high", self.high)):
            if bounds is not None and len(bounds) != len(self.columns or ()):
                raise DecodingError(f"lead: {name} is {bounds}; valid is one for each of the columns {self.columns}")


@settings(error=DecodingError)
class DecoderConfig(Criterion):
    """Settings for :func:`bid_ros.decoding.build_decoder`. Each decoder reads the fields it needs.

    Attributes:
        samples: N, strong samples of the BID decoders. With 1 they are vanilla. The other decoders always draw 1.
        weak_samples: ``samples``, or 0 without a weak policy. None means ``samples``.
        action_horizon: actions executed before the next decision. 1 is closed loop; ``all`` (the ``H - (To - 1)``
            executable rows) is open loop.
        agreement: of a decoder that draws several samples. The rows that they agree on are executed before the next
            decision, see :mod:`bid_ros.decoding.agreement`: ``action_horizon`` at least, all at most. It is the largest
            distance from the chosen action, in units of its features' spread, or in action units without weights. None:
            always ``action_horizon``.
        ema_weight: lambda, weight of the new prediction. The previous decision has the weight 1 - lambda.
        ensemble: m, in place of ``ema_weight``: all predictions of an instant are averaged, the j-th of them with the
            weight ``exp(-m j)``, the oldest first. Above 0 older ones count more. None: ``ema_weight`` holds.
        warm_start: ``renoise`` adds noise to the previous decision, so the samples differ;
            ``clean`` starts from it as it is, as the published code does.
        mode_size: K; None means ``min(3, samples // 2)``.
        memory: where the previous decision is needed between its rows: ``nearest`` takes the nearest row, ``between``
            interpolates. Decisions that are made more often than a step of the grid need the second.
        variant, decay, metric, trim, terms, weights: as in :class:`bid_ros.decoding.BidConfig`.
        delay: q, steps that are executed before a decision arrives, where nobody measures them. Delay-aware BID and
            Real-Time Chunking read it.
        lead: how far a decision is shifted. Only the lead decoders read it.

    Raises:
        DecodingError: a value is outside its range, or the mode size is too large for the number of samples.
    """

    samples: Count = 16
    weak_samples: int | None = None
    action_horizon: ActionHorizon = 1
    agreement: Positive | None = None
    ema_weight: Share = 0.5
    ensemble: Annotated[float, Field(ge=-10, le=10)] | None = None
    warm_start: WarmStart = "renoise"
    mode_size: Count | None = None
    memory: Memory = "nearest"
    delay: Steps = 1
    lead: LeadConfig = LeadConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weak_samples not in (None, 0, self.samples):
            raise DecodingError(f"weak_samples is {self.weak_samples}; valid are 0 and samples, {self.samples}")
        size = self.bid(executed=1, observation_steps=1).mode_size
        if self.samples > 1 and self.variant != "paper" and self.samples < 2 * size:
            raise DecodingError(
                f"mode_size is {self.mode_size}; valid with {self.samples} samples is at most {self.samples // 2}"
            )

    def bid(
        self, executed: int, observation_steps: int, delay: int | None = None, samples: int | None = None
    ) -> BidConfig:
        """Settings of one selection, ``executed`` steps after the previous decision; ``delay`` as in BidConfig.

        ``samples``: how many there are, if fewer than the settings say. They may make the mode size smaller.
        """
        half = max(1, (self.samples if samples is None else min(samples, self.samples)) // 2)
        size = DEFAULT_MODE_SIZE if self.mode_size is None else self.mode_size
        if self.mode_size is None or samples is not None:
            size = min(size, half)
        shared: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(Criterion)}
        return BidConfig(**shared, mode_size=size, executed=executed, observation_steps=observation_steps, delay=delay)

    @property
    def between(self) -> bool:
        """Whether the previous decision is interpolated."""
        return self.memory == "between"

    @property
    def needed_weak_samples(self) -> int:
        """Weak samples that a BID decoder asks for. None without a weak policy, or if no term uses them."""
        if self.samples == 1 or self.terms in ("backward", "positive"):
            return 0
        return self.samples if self.weak_samples is None else self.weak_samples


def feature_weights(
    spread: ArrayLike, sizes: Sequence[int] | None = None, factors: Sequence[float] | None = None
) -> tuple[float, ...]:
    """Return weights that make metres, rotation and gripper comparable: the inverse spread of the training data.

    Args:
        spread: ``(D,)`` standard deviation of every column of the training actions, raw units.
        sizes: number of columns of each action feature, in order. The columns of a feature share one weight, the
            inverse of the feature's whole spread (root of the summed variances). So a distance counts the same in every
            direction, a column that hardly moves is not blown up, and every feature counts the same, however many
            columns it has. None treats every column as a feature.
        factors: how much more than that each feature counts, in order. None: 1 of each.

    Returns:
        ``(D,)`` weights for :class:`bid_ros.decoding.BidConfig`; 0 for a feature that did not vary.

    Raises:
        DecodingError: if a spread is negative or not finite, the sizes do not add up, there is not one factor of at
            least 0 for each feature, or nothing that counts varied.
    """
    columns = as_array(spread)
    if columns.ndim != 1 or not columns.size or not np.isfinite(columns).all() or (columns < 0).any():
        raise DecodingError(f"the spread of the actions is {columns.tolist()}; valid are finite numbers of at least 0")
    groups = [1] * columns.size if sizes is None else list(sizes)
    if sum(groups) != columns.size or min(groups) < 1:
        raise DecodingError(f"feature sizes {groups} do not add up to the {columns.size} columns of the spread")
    shares = [1.0] * len(groups) if factors is None else [float(factor) for factor in factors]
    if len(shares) != len(groups) or not np.isfinite(shares).all() or min(shares) < 0:
        raise DecodingError(f"the factors are {shares}; valid are {len(groups)} finite numbers of at least 0")
    weights: list[float] = []
    for group, share in zip(np.split(columns, np.cumsum(groups)[:-1]), shares, strict=True):
        whole = float(np.linalg.norm(group))
        weights += [share / whole if whole > SMALLEST_SPREAD else 0.0] * group.size
    if not any(weights):
        raise DecodingError(
            f"no action varied in the training data, or none that counts: its spread is {columns.tolist()}"
        )
    return tuple(weights)
