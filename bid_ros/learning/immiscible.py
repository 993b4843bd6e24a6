"""Noise that is assigned to actions, so that different noise leads to different chunks.

Source: Li et al., "Immiscible Diffusion: Accelerating Diffusion Training with Noise Assignment", NeurIPS 2024,
Algorithm 1.
"""

import torch
from scipy.optimize import linear_sum_assignment


def assign_noise(actions: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Return the rows of ``noise`` in the order that makes the sum of their distances to ``actions`` smallest.

    Without it, every action is trained with every noise. Then noise says little about the chunk, and the samples of a
    decision fall into the mode that most demonstrations took. The assignment is the optimal one (Hungarian method).
    For 256 chunks it takes a few milliseconds.

    Args:
        actions: ``(B, H, D)``, normalised.
        noise: ``(B, H, D)``, standard normal. Its rows stay independent of each other and standard normal as a set.
    """
    distances = torch.cdist(actions.flatten(1), noise.flatten(1))
    _, order = linear_sum_assignment(distances.cpu().numpy())
    return noise[torch.from_numpy(order).to(noise.device)]
