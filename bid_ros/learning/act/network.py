"""ACT with key points: each camera's make a token, all vectors together another one.

Zhao et al., "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware", RSS 2023, Section IV. The published
network has a residual network's whole map as tokens; key points are what a CPU computes ten times a second.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.learning.act.transformer import ActSizes, ActTransformer, act_layers
from bid_ros.learning.config import ActConfig, NetworkConfig
from bid_ros.learning.networks import CameraEncoders
from bid_ros.learning.windows import goal_size


class StyleEncoder(nn.Module):  # type: ignore[misc]
    """Tells the style of a demonstrated chunk: mean and logarithm of the variance, ``(B, latent)`` each.

    Of training alone: it explains what the observation does not, so that the chunk need not be the mean of all styles.

    Args:
        sizes: of the transformer.
        state: size of what is observed.
        rows, action_dim: R and D.
    """

    def __init__(self, sizes: ActSizes, state: int, rows: int, action_dim: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(sizes.size) * 0.02)
        self.state, self.action = nn.Linear(state, sizes.size), nn.Linear(action_dim, sizes.size)
        self.places = nn.Parameter(torch.randn(2 + rows, sizes.size) * 0.02)
        self.encoder = act_layers(sizes, sizes.encoder_layers)
        self.output = nn.Linear(sizes.size, 2 * sizes.latent)

    def forward(self, state: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both of ``(B, S)`` and ``(B, R, D)``."""
        first = self.start.expand(len(state), 1, -1)
        tokens = torch.cat([first, self.state(state)[:, None], self.action(actions)], dim=1)
        for layer in self.encoder["layers"]:
            tokens = layer(tokens, self.places)
        mean, logarithm = self.output(self.encoder["norm"](tokens)[:, 0]).chunk(2, dim=-1)
        return mean, logarithm


class ActNetworks(CameraEncoders):
    """Encoders of the images, the transformer and, for training only, the style and the head that predicts the goal.

    Args:
        task: names and shapes of the features.
        images: sizes of the image encoders.
        config: everything else.

    Attributes:
        net: transformer.
        rows: R, rows of a chunk from the newest observation on.

    Raises:
        BidError: the task observes no vector, or as :class:`CameraEncoders`.
    """

    def __init__(self, task: Task, images: NetworkConfig, config: ActConfig) -> None:
        super().__init__(task, images)
        if not self.vectors:
            raise BidError(
                f"task '{task.name}' observes images alone; valid for the family act is a vector beside them"
            )
        steps, self.rows = task.observation_steps, task.chunk_rows
        state = steps * sum(item.size for item in task.vectors)
        tokens = {f"camera{number}": steps * 2 * images.keypoints for number in range(len(self.cameras))}
        layers = config.encoder_layers, config.decoder_layers
        sizes = ActSizes(config.width, config.heads, config.hidden, *layers, config.latent)
        self.net = ActTransformer(sizes, task.action_dim, self.rows, {**tokens, "robot_state": state})
        self.style = StyleEncoder(sizes, state, self.rows, task.action_dim)
        outputs, self.goal = goal_size(task), None
        if outputs:
            self.goal = nn.Sequential(nn.Linear(sum(tokens.values()) + state, 128), nn.SiLU(), nn.Linear(128, outputs))

    def tokens(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return ``(B, size)`` of each camera and of all vectors, the steps side by side.

        Args:
            points: key points of each camera, ``(B, To, 2 K)``.
            vectors: ``(B, To, S)`` each, normalised.
        """
        state = torch.cat([vectors[name].flatten(1) for name in self.vectors], dim=1)
        return [*(item.flatten(1) for item in points), state]

    def forward(self, tokens: Sequence[torch.Tensor], latent: torch.Tensor | None = None) -> torch.Tensor:
        """Return normalised chunks ``(B, R, D)`` of :meth:`tokens`; ``latent``: the style, None: 0."""
        chunks: torch.Tensor = self.net(None, tokens, latent)
        return chunks
