"""The networks of a diffusion policy, as they are trained: encoder and :mod:`bid_ros.learning.denoiser`."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch
from bid_ros.learning.config import NetworkConfig
from bid_ros.learning.denoiser import Denoiser, prefix_share
from bid_ros.learning.windows import goal_size


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
    """Key points of one camera's image, ``(B, channels, h, w)`` in [-0.5, 0.5] to ``(B, 2 * keypoints)``.

    Maps at a quarter of the resolution locate the points. A map at an eighth adds their surroundings (38 pixels
    across). Group normalisation, because batch statistics do not work with averaged weights.
    """

    def __init__(self, height: int, width: int, config: NetworkConfig, colours: int = 3) -> None:
        super().__init__()
        channels, wide = config.image_width, config.image_width * 3 // 2 // 4 * 4
        self.stem = _image_convolution(colours, channels, 6, stride=4, padding=1)
        self.fine = _image_convolution(channels, channels, 3)
        self.coarse = nn.Sequential(_image_convolution(channels, wide, 3, stride=2), _image_convolution(wide, wide, 3))
        self.lateral = nn.Conv2d(wide, channels, 1)
        self.heat = nn.Conv2d(channels, config.keypoints, 1)
        self.grid = ((height - 4) // 4 + 1, (width - 4) // 4 + 1)
        self.points = SpatialSoftmax(*self.grid)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the key points."""
        fine = self.fine(self.stem(image))
        context = nn.functional.interpolate(self.lateral(self.coarse(fine)), size=self.grid, mode="nearest")
        return self.points(self.heat(torch.relu_(fine + context)))


class CameraEncoders(nn.Module):  # type: ignore[misc]
    """The image encoders of a task, one a camera.

    Args:
        task: names and shapes of the features.
        config: sizes.

    Attributes:
        cameras, vectors: names of the features.

    Raises:
        BidError: a vector beside cameras is named ``points``. The graph uses this name.
    """

    def __init__(self, task: Task, config: NetworkConfig) -> None:
        super().__init__()
        if task.cameras and any(item.name == "points" for item in task.vectors):
            raise BidError("task has a feature 'points' beside cameras; valid is any other name")
        self.cameras = [item.name for item in task.cameras]
        self.vectors = [item.name for item in task.vectors]
        self.images = nn.ModuleList(
            ImageEncoder(item.shape[0], item.shape[1], config, item.shape[2]).to(memory_format=torch.channels_last)
            for item in task.cameras
        )

    def points(self, images: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return key points ``(B, To, 2 * keypoints)`` of each camera, of images ``(B, To, h, w, channels)``."""
        return [
            encoder(images[name].flatten(0, 1).permute(0, 3, 1, 2)).unflatten(0, images[name].shape[:2])
            for name, encoder in zip(self.cameras, self.images, strict=True)
        ]


class TrainedEncoder(CameraEncoders):
    """Encodes all features of an observation into its condition ``(B, C)``.

    The observation steps share one image encoder per camera. Vectors enter as they are.

    Arguments and errors are those of :class:`CameraEncoders`.

    Attributes:
        condition: C.
    """

    def __init__(self, task: Task, config: NetworkConfig) -> None:
        super().__init__(task, config)
        self.steps = task.observation_steps
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
        return self.join(self.points(images), vectors)

    def join(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return :meth:`features` of key points, per camera ``(B, To, 2 * keypoints)``, and vectors."""
        parts = [of_camera.reshape(-1, self.steps * of_camera.shape[-1]) for of_camera in points]
        return torch.cat(parts + [vectors[name].flatten(1) for name in self.vectors], dim=1)

    def forward(self, images: Mapping[str, torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition of the same arguments as :meth:`features`."""
        return self.mix(self.features(images, vectors))

    def finish(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition of key points, per camera ``(B, To, 2 * keypoints)``, and vectors ``(B, To, S)``."""
        return self.mix(self.join(points, vectors))


def _image_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=padding),
        nn.GroupNorm(4, outputs),
        nn.ReLU(inplace=True),
    )


class PolicyNetworks(nn.Module):  # type: ignore[misc]
    """Encoder, denoiser and, for training only, the head that predicts the goal.

    The head reads the encoder's features: key points and vectors. The wrist camera shows the goal relative to the tool,
    so the head needs the tool's own position.

    Args:
        task: what is observed and commanded.
        config: sizes.
        clean_step: of :class:`bid_ros.learning.denoiser.Denoiser`.

    Raises:
        BidError: the sizes do not fit the task.
    """

    def __init__(self, task: Task, config: NetworkConfig, clean_step: int | None = None) -> None:
        super().__init__()
        self.encoder = TrainedEncoder(task, config)
        self.denoiser = Denoiser(task.horizon, task.action_dim, config, clean_step)
        outputs = goal_size(task)
        self.goal: nn.Module | None = None
        if outputs:
            self.goal = nn.Sequential(nn.Linear(self.encoder.size, 128), nn.SiLU(), nn.Linear(128, outputs))

    def losses(
        self,
        batch: Batch,
        noisy: torch.Tensor,
        step: torch.Tensor,
        target: torch.Tensor,
        prefix_rows: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return mean squared errors in normalised units: ``loss`` and, where there is a goal, ``goal_loss``.

        Args:
            batch: the samples.
            noisy: ``(B, H, D)``, their actions noised to levels ``step``.
            step: ``(B,)``.
            target: ``(B, H, D)`` that the denoiser should predict.
            prefix_rows: ``(B,)``: how many of the first rows are given clean, less than H. They do not count. None: no
                row.
        """
        features = self.encoder.features(batch.images, batch.vectors)
        condition = self.encoder.mix(features)
        if prefix_rows is None:
            found = {"loss": nn.functional.mse_loss(self.denoiser(noisy, step, condition), target)}
        else:
            given = prefix_share(prefix_rows, target.shape[1]) > 0
            noisy = torch.where(given.unsqueeze(-1), batch.actions, noisy)
            prediction = self.denoiser(noisy, step, condition, prefix_rows)
            found = {"loss": nn.functional.mse_loss(prediction[~given], target[~given])}
        if self.goal is not None and batch.goals is not None:
            found["goal_loss"] = nn.functional.mse_loss(self.goal(features), batch.goals)
        return found
