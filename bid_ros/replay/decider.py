"""Makes the decisions of a recording again: with its noise, its number of samples and its delay."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bid_ros.core.observation import History, Observation
from bid_ros.decoding import Decoder
from bid_ros.policy.decide import DecisionMaker, DecisionRecord
from bid_ros.replay.cue import Cue, Setting

CHANGEABLE: Final = ("decoder", "samples", "action_horizon", "seed")


@dataclass(frozen=True)
class Changes:
    """What a replay does in another way than the recording. None: as recorded.

    Attributes:
        decoder: name, with settings if it has some.
        action_horizon: actions executed a decision.
        samples: N.
        seed: of the sampling noise.
    """

    decoder: str | None = None
    action_horizon: int | None = None
    samples: int | None = None
    seed: int | None = None


class Decider:
    """Decides on cues in their order. Live nodes and lockstep use it alike.

    Args:
        maker: policy and decoder, with which it begins.
        build: from the name of a decoder, N and the action horizon to a new decoder.
        given: name, N, action horizon and seed of the decoder in ``maker``.
        changes: what differs from the recording.
    """

    def __init__(
        self,
        maker: DecisionMaker,
        build: Callable[[str, int, int], Decoder],
        given: tuple[str, int, int, int],
        changes: Changes | None = None,
    ) -> None:
        self._maker, self._build, self._changes = maker, build, changes or Changes()
        self._decoder, self._seed = given[:3], given[3]
        self._stream: int | None = None

    @property
    def setting(self) -> dict[str, Any]:
        """Decoder, action horizon and seed of the last decision."""
        name, _, horizon = self._decoder
        return {"decoder": name, "action_horizon": horizon, "seed": self._seed}

    @property
    def history(self) -> History:
        """The observed steps that the policy wants."""
        return self._maker.history

    def decide(self, cue: Cue, observation: Observation) -> DecisionRecord | None:
        """Decide on an observation as the recorded system did. None: the decoder goes on with its last decision.

        Raises:
            DecodingError: the recorded decoder does not exist here, or cannot decode.
        """
        setting = cue.recorded.setting if cue.recorded is not None else None
        self._prepare(setting)
        seed = self._seed_of(setting)
        if cue.stream != self._stream or seed != self._seed:
            self._stream, self._seed = cue.stream, seed
            self._maker.reset(seed, cue.stream)
        if setting is not None:
            self._maker.delay = setting.delay
            self._maker.limit = setting.samples if self._changes.samples is None else None
        return self._maker.decide(observation)

    def _seed_of(self, setting: Setting | None) -> int:
        if self._changes.seed is not None:
            return self._changes.seed
        return self._seed if setting is None else setting.seed

    def _prepare(self, setting: Setting | None) -> None:
        """Take another decoder where the recording did, unless the replay has its own."""
        name, samples, horizon = self._decoder
        if setting is not None:
            name, horizon = setting.decoder, setting.action_horizon
            samples = max(samples, setting.samples)  # the limit makes it fewer
        changes = self._changes
        wanted = (changes.decoder or name, changes.samples or samples, changes.action_horizon or horizon)
        if wanted != self._decoder:
            self._maker.use(self._build(*wanted))
            self._decoder = wanted
            self._stream = None
