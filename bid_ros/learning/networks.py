"""The networks of a diffusion policy, as they are trained.

The denoiser is a conditional one-dimensional U-Net (Chi et al., "Diffusion Policy", RSS 2023, Section 4 and Appendix),
small enough for a CPU ten times a second. All samples of a decision share step and condition, so the FiLM layers
compute one row, whatever the number of samples. It uses SiLU instead of Mish, because OpenVINO's compiler does not fuse
Mish.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.learning.batch import Batch
from bid_ros.learning.config import GROUPS, NetworkConfig
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


class ResidualBlock(nn.Module):  # type: ignore[misc]
    """Two convolutions along time, the first followed by FiLM (Perez et al., AAAI 2018): scale and shift a channel.

    ``(N, inputs, T)`` and a context ``(N or 1, context)`` to ``(N, outputs, T)``.
    """

    def __init__(self, inputs: int, outputs: int, context: int, kernel: int) -> None:
        super().__init__()
        self.first = _time_convolution(inputs, outputs, kernel)
        self.second = _time_convolution(outputs, outputs, kernel)
        self.film = nn.Linear(context, 2 * outputs)
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, values: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        scale, shift = self.film(context).unsqueeze(-1).chunk(2, dim=1)
        hidden = self.first(values) * (1 + scale) + shift
        return self.second(hidden) + self.skip(values)


class Denoiser(nn.Module):  # type: ignore[misc]
    """Predicts from noisy chunks, noise level and condition.

    Args:
        horizon: H.
        action_dim: D.
        config: sizes.

    Raises:
        BidError: the horizon cannot be halved once for each level after the first.
    """

    def __init__(self, horizon: int, action_dim: int, config: NetworkConfig) -> None:
        super().__init__()
        widths, context = config.widths, config.condition + config.step_embedding
        factor = 2 ** (len(widths) - 1)
        if horizon % factor:
            raise BidError(f"horizon is {horizon}; valid for {len(widths)} widths is a multiple of {factor}")

        def blocks(inputs: int, outputs: int) -> nn.ModuleList:
            first = [inputs] + [outputs] * (config.blocks - 1)
            return nn.ModuleList(ResidualBlock(size, outputs, context, config.kernel) for size in first)

        half = config.step_embedding // 2
        self.register_buffer(
            "frequencies", torch.exp(-math.log(1e4) * torch.arange(half) / (half - 1)), persistent=False
        )
        self.embed = nn.Sequential(nn.Linear(2 * half, 4 * half), nn.SiLU(), nn.Linear(4 * half, 2 * half))
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(blocks(low, high) for low, high in zip((action_dim, *widths), widths, strict=False))
        self.shrink = nn.ModuleList(nn.Conv1d(low, low, 3, stride=2, padding=1) for low, _ in pairs)
        self.middle = blocks(widths[-1], widths[-1])
        self.up = nn.ModuleList(blocks(2 * high, low) for low, high in reversed(pairs))
        self.grow = nn.ModuleList(nn.ConvTranspose1d(low, low, 4, stride=2, padding=1) for low, _ in reversed(pairs))
        self.final = _time_convolution(widths[0], widths[0], config.kernel)
        self.output = nn.Conv1d(widths[0], action_dim, 1)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the prediction ``(N, H, D)``.

        Args:
            sample: ``(N, H, D)``, normalised.
            step: ``(N,)`` or ``(1,)`` int64, training time step.
            condition: ``(N, C)`` or ``(1, C)``.
        """
        angles = step.to(sample.dtype).unsqueeze(-1) * self.frequencies
        level = self.embed(torch.cat([angles.sin(), angles.cos()], dim=-1))
        context = nn.functional.silu(torch.cat([level, condition], dim=-1))
        hidden = sample.transpose(1, 2)
        kept = []
        for index, group in enumerate(self.down):
            hidden = _through(group, hidden, context)
            kept.append(hidden)
            if index < len(self.shrink):
                hidden = self.shrink[index](hidden)
        hidden = _through(self.middle, hidden, context)
        for group, grow in zip(self.up, self.grow, strict=True):
            hidden = grow(_through(group, torch.cat([hidden, kept.pop()], dim=1), context))
        return self.output(self.final(hidden)).transpose(1, 2)


def _through(group: nn.ModuleList, hidden: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
    for block in group:
        hidden = block(hidden, context)
    return hidden


def _time_convolution(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2), nn.GroupNorm(GROUPS, outputs), nn.SiLU()
    )


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
