"""The decoder seam: what policy node, evaluation and replay share.

A decision has two hooks. ``propose`` acts before sampling: how many samples of each policy, and from where the
denoising starts. ``choose`` acts after it: which chunk is executed. A caller does, at each tick::

    proposal = decoder.propose(request)
    if proposal.strong == 0:
        ...  # the chunk in flight goes on; choose is not called
    else:
        strong, weak = sample(proposal)
        choice = decoder.choose(request, strong, weak)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.decoding.bid import Selection
from bid_ros.decoding.config import check_count
from bid_ros.errors import DecodingError

StartMode = Literal["noise", "clean", "renoise"]


@dataclass(frozen=True)
class DecodeRequest:
    """One decision to make.

    Attributes:
        stamp_ns: time of the newest observation, ns; the instant of row ``observation_steps - 1`` of a prediction.
        dt_ns: time between two rows of a prediction, ns.
        observation_steps: To; the first ``To - 1`` rows of a prediction are past.
        horizon: H, rows of a prediction.
        action_dim: D, values per action.

    Raises:
        DecodingError: for a value outside its range.
    """

    stamp_ns: int
    dt_ns: int
    observation_steps: int
    horizon: int
    action_dim: int

    def __post_init__(self) -> None:
        for name in ("dt_ns", "observation_steps", "action_dim"):
            check_count(name, getattr(self, name), 1)
        if self.horizon < self.observation_steps:
            raise DecodingError(
                f"horizon is {self.horizon}; valid is at least the {self.observation_steps} observation steps"
            )

    @property
    def executable(self) -> int:
        """Rows of a prediction that can be executed: the current step and all after it."""
        return self.horizon - (self.observation_steps - 1)


@dataclass(frozen=True, eq=False)
class Proposal:
    """What to sample.

    Attributes:
        strong: samples of the strong policy; 0 means: do not sample, keep executing the previous chunk.
        weak: samples of the weak policy; without one, pass ``weak=None`` to ``choose``.
        start: ``(H, D)`` trajectory in raw action units from which the denoising starts, None for noise.
        start_mode: ``noise``; ``clean``: from ``start`` as it is; ``renoise``: from ``start`` with noise
            added, other noise for every sample. The sampler says how much noise.
    """

    strong: int
    weak: int
    start: NDArray[np.float64] | None = None
    start_mode: StartMode = "noise"


@dataclass(frozen=True, eq=False)
class Choice:
    """What was decided.

    Attributes:
        actions: ``(H, D)``, full prediction, past rows included, raw action units.
        index: row of the strong samples, -1 if the decision is a blend and none of them.
        selection: criteria of all candidates, None for decoders that compare none.
        previous: ``(H - e, D)``, the previous decision that was compared or blended with, None if nothing overlapped.
        executed: e, grid steps since the previous decision, 0 without one.
    """

    actions: NDArray[np.float64]
    index: int
    selection: Selection | None
    previous: NDArray[np.float64] | None
    executed: int


class Decoder(Protocol):
    """A way to turn samples of a policy into what the robot does. It remembers, so it has one user at a time."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""
        ...

    def propose(self, request: DecodeRequest) -> Proposal:
        """Say what to sample for a decision; changes nothing. DecodingError if the request cannot be served."""
        ...

    def choose(self, request: DecodeRequest, strong: NDArray[np.floating], weak: NDArray[np.floating] | None) -> Choice:
        """Decide on the samples ``(N, H, D)`` and remember the decision.

        Raises:
            DecodingError: if the samples have another shape than the request says or a value is not finite.
        """
        ...
