"""A cue: the moment of a recording at which a decision is made, and what was decided there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.observation import Observation
from bid_ros.core.stamps import stamp_ns
from bid_ros.decoding import current_decoder


@dataclass(frozen=True)
class Setting:
    """What a recorded decision says about how it was made.

    Attributes:
        decoder: name and settings, as they are written today.
        action_horizon: actions executed a decision.
        samples: N, strong samples that were drawn, also those that were screened out.
        seed, stream: of the sampling noise.
        delay: steps that the decoder was told; None: none.
        runtime: network runtime.
        bundle: name of the bundle, @, first digits of its hash.
    """

    decoder: str
    action_horizon: int
    samples: int
    seed: int
    stream: int
    delay: int | None
    runtime: str
    bundle: str


@dataclass(frozen=True, eq=False)
class RecordedDecision:
    """A decision as it was recorded.

    Attributes:
        stamp_ns: time of the newest observation.
        sequence: its number in the run.
        setting: how it was made.
        samples_ns: ``(To,)`` stamps of the samples in each row of the observation, by feature.
        digest: of the observation, see :meth:`bid_ros.core.observation.Observation.digest`.
        selected: ``(H, D)`` float32, what was decided.
        index: of the chosen sample, -1 where the decision is not one of the samples.
    """

    stamp_ns: int
    sequence: int
    setting: Setting
    samples_ns: dict[str, tuple[int, ...]]
    digest: int
    selected: NDArray[np.float32]
    index: int


@dataclass(frozen=True, eq=False)
class Cue:
    """A moment at which to decide.

    Attributes:
        stamp_ns: time of the newest observation.
        observation: on which to decide; None if the recording lacks a sample of it.
        problem: why there is no observation.
        stream: number of the noise's stream; a new one begins with each episode.
        recorded: decision of the recording; None if it holds none.
    """

    stamp_ns: int
    observation: Observation | None
    problem: str
    stream: int
    recorded: RecordedDecision | None


def recorded_from(message: Any) -> RecordedDecision:
    """Return the decision in a message ``bid_msgs/Decision``, from ROS or from a bag."""
    names, stamps = list(message.observed), [int(stamp) for stamp in message.observed_ns]
    steps = len(stamps) // max(1, len(names))
    delay = int(message.delay_steps)
    return RecordedDecision(
        stamp_ns=stamp_ns(message),
        sequence=int(message.sequence),
        setting=Setting(
            decoder=current_decoder(str(message.decoder)),
            action_horizon=int(message.action_horizon),
            samples=int(message.samples) + int(message.screened),
            seed=int(message.seed),
            stream=int(message.stream),
            delay=None if delay < 0 else delay,
            runtime=str(message.runtime),
            bundle=str(message.bundle),
        ),
        samples_ns={name: tuple(stamps[at * steps : (at + 1) * steps]) for at, name in enumerate(names)},
        digest=int(message.observation_digest),
        selected=np.asarray(message.selected, dtype=np.float32).reshape(message.steps, message.dims),
        index=int(message.selected_index),
    )
