"""One encoding and one draw of samples for all decoders that ask for the same: a fair comparison, and a cheap one."""

from typing import Any

import numpy as np

from bid_ros.core.observation import Observation
from bid_ros.core.rotation import Array
from bid_ros.decoding import StartMode
from bid_ros.policy.base import Policy


class SharedPolicy(Policy):
    """A policy that remembers what it encoded and drew for the present observation.

    Every decoder gets the same noise at the same decision. So two decoders that ask for the same number of samples
    choose among the very same chunks, and a single sample is the first of them.

    Args:
        policy: draws the samples.
        seed: seed of the noise.

    Attributes:
        encode_ms, sample_ms: time of the last real encoding and of the last real draw.
    """

    def __init__(self, policy: Policy, seed: int) -> None:
        self._policy, self._seed = policy, seed
        self.runtime = policy.runtime
        self.has_gradients = getattr(policy, "has_gradients", False)
        self._decision: tuple[int, int] = (0, 0)
        self._encoded: dict[bool, Any] = {}
        self._drawn: dict[tuple[int, int], tuple[Array, Array | None]] = {}

    @property
    def has_weak(self) -> bool:
        """Whether there is a weak policy."""
        return self._policy.has_weak

    def begin(self, episode: int, row: int) -> None:
        """Go on to another decision."""
        self._decision = (episode, row)
        self._encoded.clear()
        self._drawn.clear()

    def encode(self, observation: Observation, weak: bool = True) -> Any:
        """Encode the observation, once for all decoders. Raises as :meth:`Policy.encode`."""
        weak = weak and self.has_weak
        if weak not in self._encoded:
            self._encoded[weak] = self._policy.encode(observation, weak)
        return self._encoded[weak]

    def sample(
        self,
        encoded: Any,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
        **guidance: Any,
    ) -> tuple[Array, Array | None]:
        """Draw the samples with the noise of this decision, whatever ``rng`` is. Raises as :meth:`Policy.sample`."""
        noise = np.random.default_rng((self._seed, *self._decision))
        if start is not None or guidance:
            return self._policy.sample(encoded, strong, weak, noise, start, start_mode, **guidance)
        if (strong, weak) not in self._drawn:
            self._drawn[strong, weak] = self._policy.sample(encoded, strong, weak, noise)
        return self._drawn[strong, weak]

    def warm_up(self, samples: int) -> None:
        """Run every network once."""
        self._policy.warm_up(samples)
