"""Random changes of training images, fast enough for a CPU."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.learning.config import AugmentConfig

Image = NDArray[np.uint8]


def shift_images(images: Image, most: int, rng: np.random.Generator) -> Image:
    """Shift each sample by up to ``most`` whole pixels, edges repeated.

    Args:
        images: ``(B, To, h, w, 3)``.
        most: largest shift; 0 returns ``images``.
        rng: draws one shift a sample.
    """
    if most == 0:
        return images
    height, width = images.shape[2:4]
    shifts = rng.integers(-most, most + 1, size=(len(images), 2))
    shifted = np.empty_like(images)
    for sample, (down, right) in enumerate(shifts.tolist()):
        rows = np.clip(np.arange(height) + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        shifted[sample] = images[sample][:, rows][:, :, columns]
    return shifted


def jitter(images: torch.Tensor, config: AugmentConfig, generator: torch.Generator) -> torch.Tensor:
    """Change contrast, colour, brightness and noise of each sample; returns a new tensor.

    Args:
        images: ``(B, To, h, w, 3)`` float in [-0.5, 0.5].
        config: largest changes.
        generator: source of randomness, on the images' device.
    """

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, device=images.device) * 2 - 1

    count = len(images)
    contrast = 1 + config.contrast * uniform(count, 1, 1, 1, 1)
    gain = contrast * (1 + config.contrast / 2 * uniform(count, 1, 1, 1, 3))
    mean = images.mean(dim=(1, 2, 3, 4), keepdim=True)
    offset = mean + config.brightness * uniform(count, 1, 1, 1, 1) - gain * mean
    changed = images * gain
    changed += offset
    if config.noise > 0:
        deviation = config.noise * (uniform(count, 1, 1, 1, 1) + 1) / 2
        # Uniform numbers cost a tenth of normal ones on a CPU; their deviation is 1 / sqrt(3).
        changed += uniform(*images.shape).mul_(deviation * 3**0.5)
    return changed.clamp_(-0.5, 0.5)
