"""Bidirectional Decoding as the published code computes it, version 2, in PyTorch."""

import torch


def choose(
    strong: torch.Tensor,
    weak: torch.Tensor | None,
    previous: torch.Tensor | None,
    observation_steps: int,
    executed: int = 1,
    mode_size: int = 3,
    decay: float = 0.5,
) -> int:
    """Return the index of the chosen sample.

    Args:
        strong: ``(N, H, D)``, task units.
        weak: ``(N, H, D)``, or None.
        previous: ``(H - executed, D)``, the previous decision from its first row that is not executed; None at first.
        observation_steps: To; row ``To - 1`` is the current step.
        executed: e, actions executed a decision.
        mode_size: K.
        decay: rho.
    """
    count, ratio = strong.shape[0], 0.0
    backward: torch.Tensor | float = 0.0
    order = torch.arange(count)
    if previous is not None:
        count = count // mode_size
        strong, backward, order = _most_coherent(strong, previous, observation_steps - 1, decay, count)
        if weak is not None:
            weak, _, _ = _most_coherent(weak, previous, observation_steps - 1, decay, count)
        reach = (strong.shape[1] * decay) ** 2
        ratio = reach / (reach + executed**2)
    near = _distances(strong, strong).topk(count // 2 + 1, dim=-1, largest=False).values[:, 1:].mean(dim=-1)
    far: torch.Tensor | float = 0.0
    if weak is not None:
        # Rows are weak samples: the published code pairs candidate and weak sample of the same rank.
        far = _distances(weak, strong).topk(count // 2, dim=-1, largest=False).values.mean(dim=-1)
    score = ratio * backward + (1 - ratio) * (near - far)
    return int(order[score.argmin()])


def _most_coherent(
    chunks: torch.Tensor, previous: torch.Tensor, first: int, decay: float, count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the ``count`` chunks that continue ``previous`` best, their distances to it, and their indices."""
    last = previous.shape[0]
    weights = torch.tensor([decay**index for index in range(last - first)])
    distances = torch.linalg.vector_norm(chunks[:, first:last] - previous[first:], dim=-1) * (weights / weights.sum())
    sums, order = distances.sum(dim=-1).sort()
    return chunks[order[:count]], sums[:count], order[:count]


def _distances(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return ``(A, B)``: mean distance over the steps of a chunk."""
    return torch.linalg.vector_norm(rows.unsqueeze(1) - columns.unsqueeze(0), dim=-1).mean(dim=-1)
