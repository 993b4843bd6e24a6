"""A decoder: of all samples, execute the one that is nearest to the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bid_ros.decoding import Choice, DecoderConfig, DecodeRequest, Needs, Proposal


class Medoid:
    """It compares samples of one decision only, so it remembers nothing."""

    needs = Needs()  # samples from noise

    def __init__(self, name: str, config: DecoderConfig) -> None:
        self.name, self._samples = name, config.samples
        self._weights = np.array(config.weights or 1.0)  # make metres, rotation and gripper comparable

    def reset(self) -> None:
        """Forget the last episode."""

    def propose(self, request: DecodeRequest) -> Proposal:
        """Ask for N strong samples and no weak ones."""
        return Proposal(strong=self._samples, weak=0)

    def choose(self, request: DecodeRequest, strong: NDArray[np.floating], weak: NDArray[np.floating] | None) -> Choice:
        """Choose among samples ``(N, H, D)``."""
        rows = (strong * self._weights).reshape(len(strong), -1)
        distances = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
        index = int(distances.sum(axis=1).argmin())
        return Choice(strong[index], index, selection=None, previous=None, executed=0)


def medoid(name: str, config: DecoderConfig) -> Medoid:
    """Build the decoder; the registry calls this with the name that was asked for."""
    return Medoid(name, config)
