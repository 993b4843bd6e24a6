"""The first half of a decision: what to sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bid_ros.core.errors import DecodingError
from bid_ros.core.rotation import Array
from bid_ros.decoding import DecodeRequest, Guidance, StartMode
from bid_ros.policy.base import Policy


@dataclass(frozen=True, eq=False)
class Draft:
    """The first half of a decision: what to sample. Its fields are the arguments of :meth:`Policy.sample`.

    Attributes:
        request: request to the decoder.
        encoded: encoded observation.
        strong, weak: numbers of samples.
        rng: source of the noise.
        start, start_mode: start of the sampling.
        guidance: what the strong samples are drawn towards, None for nothing.
        encode_ns: time spent on encoding.
    """

    request: DecodeRequest
    encoded: Any
    strong: int
    weak: int
    rng: np.random.Generator
    start: Array | None = None
    start_mode: StartMode = "noise"
    guidance: Guidance | None = None
    encode_ns: int = 0

    def sample(self, policy: Policy) -> tuple[Array, Array | None]:
        """Let a policy draw the samples.

        Raises:
            DecodingError: as :meth:`Policy.sample`, or the policy cannot be guided, or cannot start from a chunk.
        """
        given: dict[str, Any] = {}
        if self.start_mode != "noise" and not policy.capabilities.starts:
            raise DecodingError(f"start mode is '{self.start_mode}'; valid for this policy is noise")
        if self.guidance is not None:
            if not policy.capabilities.gradients:
                raise DecodingError(f"guided samples need gradients, which runtime '{policy.runtime}' has not")
            given["guidance"] = self.guidance
        return policy.sample(self.encoded, self.strong, self.weak, self.rng, self.start, self.start_mode, **given)
