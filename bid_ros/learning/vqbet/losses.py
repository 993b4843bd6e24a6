"""What VQ-BeT learns: the codes of demonstrated chunks, and offsets from what codes stand for.

Source: Lee et al., "Behavior Generation with Latent Actions", ICML 2024, Section 3.3, Eqs. 5 and 6.
"""

import torch
from torch import nn

from bid_ros.learning.vqbet.config import VqBetConfig
from bid_ros.learning.vqbet.network import VqBet


def losses(
    network: VqBet, outputs: torch.Tensor, chunks: torch.Tensor, config: VqBetConfig, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Return ``loss``, the one to descend, and what it is made of.

    Args:
        network: coder and heads.
        outputs: ``(M, width)`` of the transformer.
        chunks: ``(M, R, D)``, demonstrated, normalised.
        config: weights.
        generator: source of codes that are drawn.

    Returns:
        ``loss``; ``code_loss``, the weighted focal losses; ``action_error``, mean absolute error in units of the
        chunks' spread, with the codes that ``offset_codes`` says; ``code_share``, share of the likeliest first codes
        that are right.
    """
    heads, coder = network.heads, network.coder
    with torch.no_grad():
        true = coder.encode(chunks)
    primary, secondary = heads.primary(outputs), heads.second(outputs, true[:, 0])
    code_loss = config.primary_weight * _focal(primary, true[:, 0], config.focal)
    code_loss = code_loss + config.secondary_weight * _focal(secondary, true[:, 1], config.focal)
    codes = true
    if config.offset_codes == "drawn":
        with torch.no_grad():
            first = _draw(primary, config.temperature, generator)
            codes = torch.stack([first, _draw(heads.second(outputs, first), config.temperature, generator)], dim=1)
    offsets = heads.offsets(outputs).unflatten(-1, heads.shape)
    rows = torch.arange(len(codes), device=codes.device)
    offset = offsets[rows, 0, codes[:, 0]] + offsets[rows, 1, codes[:, 1]]
    predicted = coder.decode(codes).detach() + offset * coder.scale
    error = ((predicted - chunks) / coder.scale).abs().mean()
    right = (primary.argmax(dim=-1) == true[:, 0]).float().mean()
    total = code_loss + config.offset_weight * error
    return {"loss": total, "code_loss": code_loss.detach(), "action_error": error.detach(), "code_share": right}


def _focal(logits: torch.Tensor, target: torch.Tensor, exponent: float) -> torch.Tensor:
    log = nn.functional.log_softmax(logits, dim=-1).gather(-1, target[:, None])
    return -((1 - log.exp()) ** exponent * log).mean()


def _draw(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> torch.Tensor:
    return torch.multinomial((logits / temperature).softmax(dim=-1), 1, generator=generator)[:, 0]
