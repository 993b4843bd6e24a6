"""One encoding and one draw of samples for all decoders: a fair comparison, and a cheap one."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from bid_ros.core.observation import Observation
from bid_ros.core.rotation import Array
from bid_ros.decoding import StartMode
from bid_ros.policy.base import Capabilities, Policy

TIMED_EVERY: Final = 16
"""At one row in so many, what a decoder asks for is really computed for it alone, to measure the time."""


class SharedPolicy(Policy):
    """A policy that encodes an observation once, and draws N strong and N weak samples of it once.

    A decoder that asks for fewer gets the first of them. So all decoders that start from noise choose among the very
    same chunks, whoever else is compared. A decoder that starts elsewhere gets samples of its own, with the same noise.

    Args:
        policy: draws the samples.
        samples: N.
        seed: seed of the noise.

    Attributes:
        encode_ms, sample_ms: what the last encoding and the last samples cost a decoder alone. Valid while
            :attr:`timed` is true.
    """

    def __init__(self, policy: Policy, samples: int, seed: int) -> None:
        self._policy, self._samples, self._seed = policy, samples, seed
        self.runtime = policy.runtime
        self.encode_ms = self.sample_ms = 0.0
        self._decision: tuple[int, int] = (0, 0)
        self._encoded: Any = None
        self._pool: tuple[Array, Array | None] | None = None
        self._took: dict[tuple[int, ...], float] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Those of the policy, but that it takes no committed rows: all decoders share one encoding."""
        return replace(self._policy.capabilities, simulated_delay=0)

    @property
    def has_weak(self) -> bool:
        """Whether there is a weak policy."""
        return self._policy.has_weak

    @property
    def timed(self) -> bool:
        """Whether the times of this decision are measured."""
        return self._decision[1] % TIMED_EVERY == 1

    def begin(self, episode: int, row: int) -> None:
        """Go on to another decision: a row of an episode, which any number stands for."""
        self._decision, self._encoded, self._pool = (episode, row), None, None
        self._took.clear()

    def encode(self, observation: Observation, weak: bool = True) -> Any:
        """Encode the observation, once for all decoders. Raises as :meth:`Policy.encode`."""
        if self._encoded is None:
            self._encoded = self._policy.encode(observation, self.has_weak)
        if self.timed:
            weak = weak and self.has_weak
            self.encode_ms = self._time((int(weak),), lambda: self._policy.encode(observation, weak))
        return self._encoded

    def pool(self, encoded: Any) -> tuple[Array, Array | None]:
        """Return N strong samples and N weak ones, None without a weak policy. Raises as :meth:`Policy.sample`."""
        if self._pool is None:
            self._pool = self._draw(encoded, self._samples, self._samples if self.has_weak else 0)
        return self._pool

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
        """Give samples with the noise of this decision, whatever ``rng`` is. Raises as :meth:`Policy.sample`."""
        if start is not None or guidance or max(strong, weak) > self._samples:
            begin = time.monotonic_ns()
            drawn = self._draw(encoded, strong, weak, start, start_mode, **guidance)
            self.sample_ms = _ms_since(begin)
            return drawn
        if self.timed:
            self.sample_ms = self._time((strong, weak), lambda: self._draw(encoded, strong, weak))
        chunks, others = self.pool(encoded)
        return chunks[:strong], None if weak == 0 or others is None else others[:weak]

    def warm_up(self, samples: int) -> None:
        """Run every network once."""
        self._policy.warm_up(samples)

    def _draw(self, encoded: Any, strong: int, weak: int, *start: Any, **guidance: Any) -> tuple[Array, Array | None]:
        noise = np.random.default_rng((self._seed, *self._decision))
        return self._policy.sample(encoded, strong, weak, noise, *start, **guidance)

    def _time(self, key: tuple[int, ...], compute: Callable[[], object]) -> float:
        """Return how long a computation takes, measured once a decision."""
        if key not in self._took:
            begin = time.monotonic_ns()
            compute()
            self._took[key] = _ms_since(begin)
        return self._took[key]


def _ms_since(begin_ns: int) -> float:
    return (time.monotonic_ns() - begin_ns) / 1e6
