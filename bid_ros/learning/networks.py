"""The networks of a policy, as they are trained."""

import torch
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch
from bid_ros.learning.config import NetworkConfig
from bid_ros.learning.denoiser import Denoiser
from bid_ros.learning.encoder import TrainedEncoder
from bid_ros.learning.goal import goal_size


class PolicyNetworks(nn.Module):  # type: ignore[misc]
    """Encoder, denoiser and, for training only, the head that predicts the goal.

    The head reads the encoder's features: key points and vectors. The wrist camera shows the goal relative to the tool,
    so the head needs the tool's own position.

    Raises:
        BidError: the sizes do not fit the task.
    """

    def __init__(self, task: Task, config: NetworkConfig) -> None:
        super().__init__()
        self.encoder = TrainedEncoder(task, config)
        self.denoiser = Denoiser(task.horizon, task.action_dim, config)
        outputs = goal_size(task)
        self.goal: nn.Module | None = None
        if outputs:
            self.goal = nn.Sequential(nn.Linear(self.encoder.size, 128), nn.SiLU(), nn.Linear(128, outputs))

    def losses(
        self, batch: Batch, noisy: torch.Tensor, step: torch.Tensor, target: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Return mean squared errors in normalised units: ``loss`` and, where there is a goal, ``goal_loss``.

        Args:
            batch: the samples.
            noisy: ``(B, H, D)``, their actions noised to levels ``step``.
            step: ``(B,)``.
            target: ``(B, H, D)`` that the denoiser should predict.
        """
        features = self.encoder.features(batch.images, batch.vectors)
        prediction = self.denoiser(noisy, step, self.encoder.mix(features))
        found = {"loss": nn.functional.mse_loss(prediction, target)}
        if self.goal is not None and batch.goals is not None:
            found["goal_loss"] = nn.functional.mse_loss(self.goal(features), batch.goals)
        return found
