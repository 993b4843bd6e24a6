from __future__ import annotations

import numpy as np
import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.learning.config import VqBetConfig
from bid_ros.learning.vqbet.coder import Coder
from bid_ros.learning.vqbet.network import VqBet
from bid_ros.learning.vqbet.trainer import losses
from bid_ros.policy.vqbet.codes import CodeForecast, draw_codes

SMALL = VqBetConfig(codes=4, latent=8, coder=32, width=32, layers=2, heads=2, head=32, dropout=0.0)


def test_an_output_depends_on_earlier_steps_only():
    torch.manual_seed(0)
    network = VqBet([3, 2], 4, 5, 2, SMALL).eval()
    features = [torch.randn(2, 4, 3), torch.randn(2, 4, 2)]
    changed = [part.clone() for part in features]
    changed[1][:, 2] += 1
    with torch.no_grad():
        before, after = network(features), network(changed)
    assert before.shape == (2, 4, 32)
    assert torch.equal(before[:, :2], after[:, :2])
    assert ((before - after).abs().amax(dim=-1)[:, 2:] > 1e-6).all()


def test_the_coder_learns_chunks_and_uses_its_codes():
    torch.manual_seed(0)
    coder, generator = Coder(5, 2, SMALL), torch.Generator().manual_seed(0)
    ends = torch.tensor([[x, y] for x in (-0.8, -0.3, 0.3, 0.8) for y in (-0.6, 0.6)])
    chunks = ends[:, None] * torch.linspace(0, 1, 5)[:, None]
    optimiser = torch.optim.AdamW(coder.parameters(), lr=3e-3)
    for step in range(300):
        batch = chunks[torch.randint(8, (64,), generator=generator)]
        if step == 0:
            coder.quantiser.start(coder.latent(batch), generator)
        optimiser.zero_grad()
        coder.losses(batch)["coder_loss"].backward()
        optimiser.step()
        coder.quantiser.follow(coder.latent(batch), generator)
    with torch.no_grad():
        codes = coder.encode(chunks)
        assert len(codes.unique(dim=0)) == 8
        assert (coder.decode(codes) - chunks).abs().mean() < 0.03


@pytest.mark.parametrize("sequential", [True, False])
def test_codes_of_two_strategies_are_not_mixed(sequential):
    """Half of the demonstrations go left, half right, seen the same. Codes drawn on their own mix the two."""
    torch.manual_seed(0)
    config = VqBetConfig(
        codes=4, latent=8, coder=32, width=32, layers=1, heads=2, head=32, sequential=sequential, temperature=1.0
    )
    network, generator = VqBet([1], 1, 2, 1, config), torch.Generator().manual_seed(0)
    chunks = torch.tensor([[[-1.0], [-1.0]], [[1.0], [1.0]]])
    books = network.coder.quantiser.books
    with torch.no_grad():
        # Two first codes, each with a second one of its own.
        latent = network.coder.latent(chunks)
        books.fill_(100.0)
        books[0, :2] = latent + torch.eye(2, 8) * 0.1
        books[1, :2] = -torch.eye(2, 8) * 0.1
        assert network.coder.encode(chunks).tolist() == [[0, 0], [1, 1]]
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(250):
        outputs = network([torch.zeros(8, 1, 1)])[:, 0]
        loss = losses(network, outputs, chunks.repeat(4, 1, 1), config, generator)["loss"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        forecast = network.eval().heads(network([torch.zeros(1, 1, 1)])[:, 0])
    drawn = draw_codes(
        CodeForecast(*(part[0].numpy() for part in forecast)), 0.5, np.random.default_rng(0).random((99, 2))
    )
    mixed = (drawn[:, 0] != drawn[:, 1]).mean()
    assert mixed < 0.05 if sequential else mixed > 0.3


def test_sizes_that_do_not_fit():
    with pytest.raises(BidError, match="width is 30; valid with 4 heads is a multiple of 4"):
        VqBetConfig(width=30)
