"""The residual VQ-VAE: action chunks as pairs of codes.

Sources: Lee et al., "Behavior Generation with Latent Actions", ICML 2024, Section 3.2 (Eqs. 2 and 3);
van den Oord et al., "Neural Discrete Representation Learning", NeurIPS 2017 (moving averages as code books: Appendix
A.1); Zeghidour et al., "SoundStream", 2021, Algorithm 1 (residual quantisation) and Section III-C (codes that are
hardly used move to a sample of the batch).
"""

from typing import Final

import torch
from torch import nn

from bid_ros.learning.config import VqBetConfig
from bid_ros.policy.vqbet.codes import LAYERS

KEPT: Final = 0.95  # of a code book's past, in each training step
SMALLEST_SHARE: Final = 0.02  # of an even share of the batch; codes below it are moved


class ResidualQuantiser(nn.Module):  # type: ignore[misc]
    """Two layers of codes. The second one quantises what the first one leaves."""

    def __init__(self, codes: int, size: int) -> None:
        super().__init__()
        self.register_buffer("books", torch.zeros(LAYERS, codes, size))
        self.register_buffer("sums", torch.zeros(LAYERS, codes, size))
        self.register_buffer("counts", torch.zeros(LAYERS, codes))

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """Return the codes ``(B, 2)`` of latent vectors ``(B, Z)``."""
        found = []
        for book in self.books:
            nearest = torch.cdist(latent, book).argmin(dim=-1)
            found.append(nearest)
            latent = latent - book[nearest]
        return torch.stack(found, dim=-1)

    def layers(self, codes: torch.Tensor) -> torch.Tensor:
        """Return the vectors ``(2, B, Z)`` of codes ``(B, 2)``, layer by layer. Their sum is what they stand for."""
        return torch.stack([book[codes[..., layer]] for layer, book in enumerate(self.books)])

    def start(self, latent: torch.Tensor, generator: torch.Generator) -> None:
        """Make vectors of a batch ``(B, Z)``, and what is left of them, the first codes."""
        latent = latent.detach()
        for layer, book in enumerate(self.books):
            chosen = torch.randint(len(latent), (len(book),), generator=generator)
            book.copy_(latent[chosen])
            self.sums[layer], self.counts[layer] = book, 1.0
            latent = latent - book[torch.cdist(latent, book).argmin(dim=-1)]

    def follow(self, latent: torch.Tensor, generator: torch.Generator) -> None:
        """Move the codes towards the mean of the vectors ``(B, Z)`` nearest to them."""
        latent = latent.detach()
        for layer, book in enumerate(self.books):
            shares = nn.functional.one_hot(torch.cdist(latent, book).argmin(dim=-1), len(book)).to(latent.dtype)
            left = latent - shares @ book
            self.counts[layer].lerp_(shares.sum(dim=0), 1 - KEPT)
            self.sums[layer].lerp_(shares.T @ latent, 1 - KEPT)
            unused = self.counts[layer] < SMALLEST_SHARE * len(latent) / len(book)
            samples = latent[torch.randint(len(latent), (len(book),), generator=generator)]
            even = len(latent) / len(book)
            self.sums[layer] = torch.where(unused[:, None], even * samples, self.sums[layer])
            self.counts[layer] = torch.where(unused, even, self.counts[layer])
            book.copy_(self.sums[layer] / self.counts[layer][:, None])
            latent = left


class Coder(nn.Module):  # type: ignore[misc]
    """Encodes normalised action chunks ``(B, R, D)`` as codes ``(B, 2)``, and decodes them.

    Args:
        rows: R.
        action_dim: D.
        config: sizes.

    Attributes:
        scale: ``(R, D)``, spread of the chunks. They are coded in these units, so that rare wide motions do not take
            the codes of common ones.
    """

    def __init__(self, rows: int, action_dim: int, config: VqBetConfig) -> None:
        super().__init__()
        self.shape, size = (rows, action_dim), rows * action_dim
        self.encoder = _layers(size, config.coder, config.latent)
        self.decoder = _layers(config.latent, config.coder, size)
        self.quantiser = ResidualQuantiser(config.codes, config.latent)
        self.commitment = config.commitment
        self.register_buffer("scale", torch.ones(rows, action_dim))

    def latent(self, chunks: torch.Tensor) -> torch.Tensor:
        """Return what is quantised, ``(B, Z)``."""
        latent: torch.Tensor = self.encoder((chunks / self.scale).flatten(1))
        return latent

    def encode(self, chunks: torch.Tensor) -> torch.Tensor:
        """Return the codes ``(B, 2)``."""
        codes: torch.Tensor = self.quantiser(self.latent(chunks))
        return codes

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Return the chunks ``(B, R, D)``."""
        return self.decoder(self.quantiser.layers(codes).sum(dim=0)).unflatten(-1, self.shape) * self.scale

    def losses(self, chunks: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return ``coder_loss``, to descend, and ``coder_error``, the mean absolute error in units of the scale.

        The gradient of the error passes the quantiser as if it was not there. The commitment draws the encoder to the
        codes, layer by layer.
        """
        latent = self.latent(chunks)
        with torch.no_grad():
            layers = self.quantiser.layers(self.quantiser(latent))
        sums = layers.cumsum(dim=0)
        passed = latent + (sums[-1] - latent).detach()
        error = (self.decoder(passed).unflatten(-1, self.shape) - chunks / self.scale).abs().mean()
        commitment = sum((latent - part).square().mean() for part in sums)
        return {"coder_loss": error + self.commitment * commitment, "coder_error": error}


def _layers(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
    )
