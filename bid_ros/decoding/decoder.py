"""The decoder interface that policy node, evaluation and replay share.

A decision has two hooks. ``propose`` runs before sampling: it says how many samples of each policy to draw, and from
where the denoising starts. ``choose`` runs after sampling: it says which chunk is executed. A caller does, at each
tick::

    proposal = decoder.propose(request)
    if proposal.strong == 0:
        ...  # keep executing the previous chunk; do not call choose
    else:
        strong, weak = sample(proposal)
        choice = decoder.choose(request, strong, weak)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.bid import Selection

StartMode = Literal["noise", "clean", "renoise"]
Change = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Returns what is executed, ``(H, D)``, of what was decided, ``(H, D)``."""


@dataclass(frozen=True)
class DecodeRequest:
    """The request for one decision.

    Attributes:
        stamp_ns: time of the newest observation, ns. Row ``observation_steps - 1`` of a prediction has this time.
        dt_ns: time between two rows of a prediction, ns.
        observation_steps: To. The first ``To - 1`` rows of a prediction lie in the past.
        horizon: H, rows of a prediction.
        action_dim: D, values per action.
        delay: q, steps that will have passed when the decision arrives, as measured. None: as the decoder's settings
            say.
        made_up: first rows of a prediction, all of the past, that the policy does not predict. They only fill its
            shape, so no criterion compares them.

    Raises:
        DecodingError: a value is outside its range.
    """

    stamp_ns: int
    dt_ns: int
    observation_steps: int
    horizon: int
    action_dim: int
    delay: int | None = None
    made_up: int = 0

    def __post_init__(self) -> None:
        for name in ("dt_ns", "observation_steps", "action_dim"):
            if getattr(self, name) < 1:
                raise DecodingError(f"{name} is {getattr(self, name)}; valid is a whole number of at least 1")
        if self.delay is not None and self.delay < 0:
            raise DecodingError(f"delay is {self.delay}; valid is a whole number of at least 0, or None")
        if self.horizon < self.observation_steps:
            raise DecodingError(
                f"horizon is {self.horizon}; valid is at least the {self.observation_steps} observation steps"
            )
        if not 0 <= self.made_up < self.observation_steps:
            raise DecodingError(
                f"made_up is {self.made_up}; valid is 0 to {self.observation_steps - 1}, the rows of the past"
            )

    @property
    def executable(self) -> int:
        """Number of rows of a prediction that can be executed: the current step and all later ones."""
        return self.horizon - (self.observation_steps - 1)

    def delay_or(self, settings: int) -> int:
        """Return the measured delay, or that of the settings if none was measured."""
        return settings if self.delay is None else self.delay


@dataclass(frozen=True, eq=False)
class Guidance:
    """What the denoising is drawn towards, see :mod:`bid_ros.decoding.rtc`.

    Attributes:
        target: ``(H, D)``, raw action units.
        weights: ``(H,)``, W: how much each row is drawn, 0 to 1.
        clip: beta, the largest factor of the gradient.
    """

    target: NDArray[np.float64]
    weights: NDArray[np.float64]
    clip: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """What to sample.

    Attributes:
        strong: number of samples of the strong policy. 0: do not sample, keep executing the previous chunk.
        weak: number of samples of the weak policy. Without a weak policy, pass ``weak=None`` to ``choose``.
        start: ``(H, D)`` trajectory in raw action units from which the denoising starts. None: noise.
        start_mode: ``noise``; ``clean``: start from ``start`` as it is; ``renoise``: start from ``start`` with noise
            added, other noise for each sample. The sampler decides how much noise.
        guidance: what the strong samples are drawn towards. None: nothing. It needs a policy that has gradients.
        committed: ``(To - 1 + q, D)`` first rows of the previous decision, raw action units: the robot executes them
            whatever is decided. Policies that were trained for delays take them. None: there are none.
    """

    strong: int
    weak: int
    start: NDArray[np.float64] | None = None
    start_mode: StartMode = "noise"
    guidance: Guidance | None = None
    committed: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Choice:
    """One decision.

    Attributes:
        actions: ``(H, D)``, full prediction, past rows included, raw action units.
        index: row of the strong samples; -1 if the decision is a blend.
        selection: criteria of all candidates. None: the decoder does not compare them.
        previous: ``(H - e, D)``, the overlap of the previous decision that was compared or blended. None: no overlap.
        executed: e, grid steps since the previous decision, rounded up if its rows were interpolated; 0 without one.
    """

    actions: NDArray[np.float64]
    index: int
    selection: Selection | None
    previous: NDArray[np.float64] | None
    executed: int


@dataclass(frozen=True)
class Needs:
    """What a decoder needs of a policy. A policy that cannot do it refuses the decoder before anything moves.

    Attributes:
        starts: its proposals may have a ``start``.
        gradients: its proposals may have a ``guidance``.
    """

    starts: bool = False
    gradients: bool = False


class Decoder(Protocol):
    """Turns samples of a policy into the chunk that is executed. It has a memory, so use it from one place."""

    @property
    def needs(self) -> Needs:
        """What it needs of a policy besides samples from noise."""

    @property
    def name(self) -> str:
        """Name in the registry."""

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""

    def executed(self, stamp_ns: int, changed: Change) -> None:
        """Remember that another motion is executed of the decision of ``stamp_ns``: safety slowed it.

        Nothing changes unless it is the last one.
        """

    def propose(self, request: DecodeRequest) -> Proposal:
        """Return what to sample for a decision. Changes nothing. Raises DecodingError if the request is not valid."""

    def choose(self, request: DecodeRequest, strong: NDArray[np.floating], weak: NDArray[np.floating] | None) -> Choice:
        """Decide on the samples ``(N, H, D)`` and remember the decision.

        Raises:
            DecodingError: the samples do not have the shape of the request, or a value is not finite.
        """
