"""Encodes an observation into the vector that conditions the denoiser."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.learning.config import NetworkConfig


class SpatialSoftmax(nn.Module):  # type: ignore[misc]
    """Expected image coordinates of each channel's activation.

    Levine et al., "End-to-End Training of Deep Visuomotor Policies", JMLR 2016, Section 5.1. ``(B, K, h, w)`` to
    ``(B, 2 K)`` in [-1, 1], all x before y of a point.
    """

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        x = torch.linspace(-1, 1, width).repeat(height)
        y = torch.linspace(-1, 1, height).repeat_interleave(width)
        self.register_buffer("grid", torch.stack([x, y]), persistent=False)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Return the coordinates."""
        # Channels last, as the convolutions leave them in memory: no copy.
        shares = maps.permute(0, 2, 3, 1).flatten(1, 2).softmax(dim=1)
        return (self.grid @ shares).flatten(1)


class ImageEncoder(nn.Module):  # type: ignore[misc]
    """Key points of one camera's image, ``(B, 3, h, w)`` in [-0.5, 0.5] to ``(B, 2 * keypoints)``.

    Maps at a quarter of the resolution locate the points. A map at an eighth adds their surroundings (38 pixels
    across). Group normalisation, because batch statistics do not work with averaged weights.
    """

    def __init__(self, height: int, width: int, config: NetworkConfig) -> None:
        super().__init__()
        channels, wide = config.image_width, config.image_width * 3 // 2 // 4 * 4
        self.stem = _convolution(3, channels, 6, stride=4, padding=1)
        self.fine = _convolution(channels, channels, 3)
        self.coarse = nn.Sequential(_convolution(channels, wide, 3, stride=2), _convolution(wide, wide, 3))
        self.lateral = nn.Conv2d(wide, channels, 1)
        self.heat = nn.Conv2d(channels, config.keypoints, 1)
        self.grid = ((height - 4) // 4 + 1, (width - 4) // 4 + 1)
        self.points = SpatialSoftmax(*self.grid)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the key points."""
        fine = self.fine(self.stem(image))
        context = nn.functional.interpolate(self.lateral(self.coarse(fine)), size=self.grid, mode="nearest")
        return self.points(self.heat(torch.relu_(fine + context)))


class TrainedEncoder(nn.Module):  # type: ignore[misc]
    """Encodes all features of an observation into its condition ``(B, C)``.

    The observation steps share one image encoder per camera. Vectors enter as they are.

    Args:
        task: names and shapes of the features.
        config: sizes.

    Attributes:
        condition: C.

    Raises:
        BidError: a vector beside cameras is named ``points``. The graph uses this name.
    """

    def __init__(self, task: Task, config: NetworkConfig) -> None:
        super().__init__()
        if task.cameras and any(item.name == "points" for item in task.vectors):
            raise BidError("task has a feature 'points' beside cameras; valid is any other name")
        self.steps = task.observation_steps
        self.cameras = [item.name for item in task.cameras]
        self.vectors = [item.name for item in task.vectors]
        self.images = nn.ModuleList(
            ImageEncoder(item.shape[0], item.shape[1], config).to(memory_format=torch.channels_last)
            for item in task.cameras
        )
        self.size = self.steps * (2 * config.keypoints * len(self.cameras) + sum(item.size for item in task.vectors))
        self.condition = config.condition
        self.mix = nn.Sequential(
            nn.Linear(self.size, 2 * config.condition), nn.SiLU(), nn.Linear(2 * config.condition, config.condition)
        )

    def features(self, images: Mapping[str, torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return key points and vectors side by side, ``(B, size)``.

        Args:
            images: per camera ``(B, To, h, w, 3)`` float, in [-0.5, 0.5].
            vectors: per feature ``(B, To, S)``, normalised.
        """
        parts = [
            encoder(images[name].flatten(0, 1).permute(0, 3, 1, 2))
            for name, encoder in zip(self.cameras, self.images, strict=True)
        ]
        return self.join(parts, vectors)

    def join(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return :meth:`features` of key points, per camera ``(B * To, 2 * keypoints)``, and vectors."""
        parts = [of_camera.reshape(-1, self.steps * of_camera.shape[-1]) for of_camera in points]
        return torch.cat(parts + [vectors[name].flatten(1) for name in self.vectors], dim=1)

    def forward(self, images: Mapping[str, torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition of the same arguments as :meth:`features`."""
        return self.mix(self.features(images, vectors))

    def finish(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition of key points, per camera ``(B * To, 2 * keypoints)``, and vectors ``(B, To, S)``."""
        return self.mix(self.join(points, vectors))


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=padding),
        nn.GroupNorm(4, outputs),
        nn.ReLU(inplace=True),
    )
