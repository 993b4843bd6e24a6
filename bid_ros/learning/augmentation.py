"""Random changes of training samples, fast enough for a CPU."""

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.learning.config import AugmentConfig

Image = NDArray[np.uint8]
NOISE_PLACES: Final = 16_384


def shift_images(images: Image, most: int, rng: np.random.Generator) -> Image:
    """Shift each sample by up to ``most`` whole pixels, edges repeated.

    Args:
        images: ``(B, To, h, w, 3)``.
        most: largest shift. 0 returns ``images``.
        rng: draws one shift for each sample.
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


def forget_history(rows: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Let a share of the samples see their newest row at every step.

    Args:
        rows: of the data set, seen by each sample at each observation step, ``(B, To)``.
        share: probability of each sample. 0 returns ``rows``.
        rng: draws which.
    """
    if share == 0:
        return rows
    return np.where(rng.random((len(rows), 1)) < share, rows[:, -1:], rows)


def offset_vectors(
    values: NDArray[np.float32], deviation: NDArray[np.float32] | float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Add an offset to normalised vectors ``(B, To, S)``: one per sample, and a fifth of it per step.

    Args:
        values: normalised to [-1, 1].
        deviation: standard deviation of the offset, of all columns or ``(S,)``; 0 returns ``values``.
        rng: draws the offsets.
    """
    if not np.any(deviation):
        return values
    count, steps, size = values.shape
    common = rng.standard_normal((count, 1, size), dtype=np.float32)
    own = rng.standard_normal((count, steps, size), dtype=np.float32)
    return (values + deviation * (common + 0.2 * own)).astype(np.float32)


def jitter(images: torch.Tensor, config: AugmentConfig, generator: torch.Generator) -> torch.Tensor:
    """Change contrast, colour, brightness and noise of each sample, in place; returns ``images``.

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
    # A sixteenth of the pixels is enough for the mean brightness.
    mean = images[:, :, ::4, ::4].mean(dim=(1, 2, 3, 4), keepdim=True)
    offset = mean + config.brightness * uniform(count, 1, 1, 1, 1) - gain * mean
    images.mul_(gain).add_(offset)
    if config.noise > 0:
        _add_noise(images, config.noise, generator)
    return images.clamp_(-0.5, 0.5)


def _add_noise(images: torch.Tensor, most: float, generator: torch.Generator) -> None:
    """Add noise to each sample, from a random place of one shared strip. Drawing new noise for all is slow."""
    size = images[0].numel()
    strip = torch.randn(size + NOISE_PLACES, generator=generator, device=images.device)
    places = torch.randint(NOISE_PLACES, (len(images),), generator=generator, device=images.device).tolist()
    deviations = (most * torch.rand(len(images), generator=generator, device=images.device)).tolist()
    for image, place, deviation in zip(images, places, deviations, strict=True):
        image.add_(strip[place : place + size].view_as(image), alpha=deviation)
