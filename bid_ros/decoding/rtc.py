"""Real-Time Chunking: denoising that is drawn towards the previous decision, through the network's true Jacobian.

Source: Black, Galliker, Levine, "Real-Time Execution of Action Chunking Flow Policies", NeurIPS 2025, Eqs. 1 to 5. A
widely used port leaves the Jacobian out, which is another method.

======================  ================================================================
paper                   here
======================  ================================================================
W                       ``prefix_weights``; 1 for rows that have passed
Y                       the previous decision, ``Guidance.target``
beta                    ``GUIDANCE_CLIP``, ``Guidance.clip``
d                       ``delay``
tau, A_1 hat, r         :mod:`bid_ros.policy.diffusion.guided`
======================  ================================================================
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from bid_ros.decoding.decoder import DecodeRequest, Guidance, Needs, Proposal
from bid_ros.decoding.prefix import prefix_weights
from bid_ros.decoding.receding import Builder, RecedingDecoder

GUIDANCE_CLIP: Final = 5.0  # the paper's


class RealTimeChunking(RecedingDecoder):
    """Executes one sample, which the denoising made a continuation of the previous decision. It has no other memory."""

    @property
    def needs(self) -> Needs:
        """Gradients: only a policy that has them can draw its sample."""
        return Needs(gradients=True)

    def propose(self, request: DecodeRequest) -> Proposal:
        """Return what to sample. Raises DecodingError as :meth:`Decoder.propose`."""
        proposal, overlap = super().propose(request), self._overlap(request)
        if overlap is None or not proposal.strong:
            return proposal
        passed, rows = request.observation_steps - 1, len(overlap.previous)
        weights, delay = np.zeros(request.horizon), request.delay_or(self._config.delay)
        weights[: min(passed, rows)] = 1.0
        if rows > passed:
            weights[passed:rows] = prefix_weights(delay, rows - passed)
        target = np.zeros((request.horizon, request.action_dim))
        target[:rows] = overlap.previous
        # The guidance says what is committed.
        return replace(proposal, guidance=Guidance(target, weights, GUIDANCE_CLIP), committed=None)


DECODERS: Final[Mapping[str, Builder]] = {"rtc": RealTimeChunking}
