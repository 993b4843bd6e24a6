"""VQ-BeT as it is trained on a task: image encoders, and the network over their tokens."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch
from bid_ros.learning.config import NetworkConfig
from bid_ros.learning.encoder import ImageEncoder
from bid_ros.learning.vqbet.config import VqBetConfig
from bid_ros.learning.vqbet.network import Forecast, VqBet


class VqBetNetworks(nn.Module):  # type: ignore[misc]
    """Encoders of the images and :class:`VqBet`. Each camera makes one token a step, all vectors together another one.

    Args:
        task: names and shapes of the features.
        images: sizes of the image encoders.
        config: everything else.

    Attributes:
        cameras, vectors: names of the features.
        net: transformer, coder and heads.

    Raises:
        BidError: a vector beside cameras is named ``points``. The graph uses this name.
    """

    def __init__(self, task: Task, images: NetworkConfig, config: VqBetConfig) -> None:
        super().__init__()
        if task.cameras and any(item.name == "points" for item in task.vectors):
            raise BidError("task has a feature 'points' beside cameras; valid is any other name")
        self.cameras = [item.name for item in task.cameras]
        self.vectors = [item.name for item in task.vectors]
        self.images = nn.ModuleList(
            ImageEncoder(item.shape[0], item.shape[1], images).to(memory_format=torch.channels_last)
            for item in task.cameras
        )
        sizes = [2 * images.keypoints] * len(self.cameras)
        if self.vectors:
            sizes.append(sum(item.size for item in task.vectors))
        self.rows = task.horizon - task.observation_steps + 1
        self.net = VqBet(sizes, task.observation_steps, self.rows, task.action_dim, config)

    def features(self, batch: Batch) -> list[torch.Tensor]:
        """Return what each token is made of, ``(B, To, S)`` each."""
        points = []
        for name, encoder in zip(self.cameras, self.images, strict=True):
            images = batch.images[name]
            found = encoder(images.flatten(0, 1).permute(0, 3, 1, 2))
            points.append(found.unflatten(0, images.shape[:2]))
        return self.join(points, batch.vectors)

    def join(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return key points ``(B, To, 2 K)`` of each camera, and all vectors ``(B, To, S)`` side by side."""
        if not self.vectors:
            return list(points)
        return [*points, torch.cat([vectors[name] for name in self.vectors], dim=-1)]

    def forecast(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> Forecast:
        """Return what is predicted at the newest observation, B = 1, of the arguments of :meth:`join`."""
        return self.net.forecast(self.net(self.join(points, vectors))[:, self.net.steps - 1])
