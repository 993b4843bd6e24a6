"""A policy of the published size: U-Net of 512, 1024 and 2048 channels, two ResNet-18. Its weights are random."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import nn

from bid_ros.core.task import Task
from bid_ros.learning.config import NetworkConfig
from bid_ros.learning.denoiser import Denoiser
from bid_ros.learning.graphs import encoding_roles, write_denoiser, write_encoding
from bid_ros.learning.networks import SpatialSoftmax
from bid_ros.policy.base import Bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.normalise import LinearNormaliser
from results.peers.eager import Networks

STAGES: Final = (64, 128, 256, 512)  # channels of a ResNet-18
GROUP: Final = 16  # channels a group of its normalisation, as in the published Diffusion Policy
KEYPOINTS: Final = 32
UNET: Final = NetworkConfig(widths=(512, 1024, 2048), blocks=2, condition=1, step_embedding=128)


class ResNet18(nn.Sequential):  # type: ignore[misc]
    """He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, to the last feature map.

    ``(B, 3, h, w)`` to ``(B, 512, h / 32, w / 32)``. Group normalisation replaces batch normalisation.

    Args:
        stages: channels of the four stages. Tests take fewer.
    """

    def __init__(self, stages: Sequence[int] = STAGES) -> None:
        blocks = [
            _Residual(inputs, outputs, stride)
            for inputs, outputs in zip((64, *stages[:-1]), stages, strict=True)
            for inputs, stride in ((inputs, 1 if inputs == outputs else 2), (outputs, 1))
        ]
        stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), _norm(64), nn.ReLU(inplace=True))
        super().__init__(stem, nn.MaxPool2d(3, 2, 1), *blocks)


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            _norm(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            _norm(outputs),
        )
        same = inputs == outputs
        self.skip = (
            nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), _norm(outputs))
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.body(values) + self.skip(values))


class FullSizeEncoder(nn.Module):  # type: ignore[misc]
    """A ResNet-18 with a spatial softmax for each camera; vectors enter as they are. All steps side by side.

    It takes what :class:`bid_ros.learning.networks.TrainedEncoder` takes.

    Args:
        task: what it sees.
        stages: of :class:`ResNet18`.
    """

    def __init__(self, task: Task, stages: Sequence[int] = STAGES) -> None:
        super().__init__()
        self.cameras = [item.name for item in task.cameras]
        self.vectors = [item.name for item in task.vectors]
        self.steps = task.observation_steps
        self.images = nn.ModuleList(
            nn.Sequential(
                ResNet18(stages),
                nn.Conv2d(stages[-1], KEYPOINTS, 1),
                SpatialSoftmax(-(-item.shape[0] // 32), -(-item.shape[1] // 32)),
                nn.Linear(2 * KEYPOINTS, 2 * KEYPOINTS),
                nn.ReLU(),
            )
            for item in task.cameras
        )
        self.condition = self.steps * (2 * KEYPOINTS * len(self.cameras) + sum(item.size for item in task.vectors))

    def forward(self, images: Mapping[str, torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition ``(B, C)`` of images ``(B, To, h, w, 3)`` and vectors ``(B, To, S)``."""
        pairs = zip(self.cameras, self.images, strict=True)
        points = [encoder(images[name].flatten(0, 1).permute(0, 3, 1, 2)) for name, encoder in pairs]
        return self.finish(points, vectors)

    def finish(self, points: Sequence[torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition of key points, per camera ``(B * To, P)``, and vectors."""
        parts = [of_camera.reshape(-1, self.steps * of_camera.shape[-1]) for of_camera in points]
        return torch.cat([*parts, *(vectors[name].flatten(1) for name in self.vectors)], dim=1)


def write_full_size(
    folder: Path,
    task: Task,
    settings: DiffusionConfig,
    unet: NetworkConfig = UNET,
    stages: Sequence[int] = STAGES,
) -> tuple[Bundle, list[Networks]]:
    """Write the graphs of a full-size strong and weak policy with random weights.

    Args:
        folder: empty folder; about 2 GB go there.
        task: what the policy sees and does.
        settings: of the sampling.
        unet: sizes of the denoiser; stages: of :class:`ResNet18`. Tests take smaller ones.

    Returns:
        The bundle, which has no ``bundle.yaml``, and the same networks in PyTorch, strong and weak.
    """
    policies: list[Networks] = []
    files: dict[str, dict[str, Path]] = {}
    for strength in ("strong", "weak"):
        torch.manual_seed(len(policies))
        encoder = FullSizeEncoder(task, stages).eval()
        config = NetworkConfig(**(vars(unet) | {"condition": encoder.condition}))
        denoiser = Denoiser(task.horizon, task.action_dim, config).eval()
        parts = (*encoding_roles(task), "denoiser")
        files[strength] = {part: folder / f"{strength}_{part}.onnx" for part in parts}
        write_encoding(encoder, task, files[strength])
        write_denoiser(denoiser, task, encoder.condition, files[strength]["denoiser"])
        policies.append(Networks(encoder, denoiser))
    bundle = Bundle(
        path=folder,
        name="full_size",
        sha256="",
        family="diffusion",
        settings=settings,
        observation={item.name: _unit(item.size) for item in task.vectors},
        action=_unit(task.action_dim),
        action_reference="base",
        action_spread=np.ones(task.action_dim),
        strong=files["strong"],
        weak=files["weak"],
        provenance={"weights": "random"},
    )
    return bundle, policies


def parameters(networks: Networks) -> tuple[int, int]:
    """Return the numbers of parameters of encoder and denoiser."""
    encoder, denoiser = (
        sum(item.numel() for item in part.parameters()) for part in (networks.encoder, networks.denoiser)
    )
    return encoder, denoiser


def _unit(size: int) -> LinearNormaliser:
    return LinearNormaliser(-np.ones(size), np.ones(size))


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(channels // GROUP, channels)
