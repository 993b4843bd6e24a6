"""From the features of an observation to the condition of the denoiser, in the order of the imported policy."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import torch
from torch import nn

from bid_ros.importing.networks.images import CameraEncoder


class ObservationNetwork(nn.Module):  # type: ignore[misc]
    """Puts the features of each step side by side, in a given order, and the steps one behind another.

    Args:
        order: names of cameras and vectors, as the policy has them side by side in a step.
        cameras: encoder of each camera; two may share a network.
        vectors: size of each vector.
        constant: ``(F,)`` that ends each step, such as the encoded text of the task. None: nothing.

    Attributes:
        cameras, vectors: their names, in the order of the arguments of :meth:`frame` and of the graphs.
        points: P, features of all cameras of a step.
        step: numbers of a step.
    """

    def __init__(
        self,
        order: Sequence[str],
        cameras: Mapping[str, CameraEncoder],
        vectors: Mapping[str, int],
        constant: torch.Tensor | None = None,
    ) -> None:
        super().__init__()
        self.order, self.cameras, self.vectors = tuple(order), tuple(cameras), tuple(vectors)
        self.encoders = nn.ModuleList(cameras.values())
        ends = list(accumulate(encoder.features for encoder in cameras.values()))
        self.places = list(pairwise([0, *ends]))
        self.register_buffer("constant", constant)
        self.points = ends[-1] if ends else 0
        self.step = self.points + sum(vectors.values()) + (0 if constant is None else len(constant))

    def size(self, steps: int) -> int:
        """Return C, numbers of the condition of so many steps."""
        return steps * self.step

    def frame(self, *images: torch.Tensor) -> torch.Tensor:
        """Return the features ``(1, P)`` of one image uint8 ``(1, h, w, 3)`` per camera."""
        return torch.cat([encoder(image) for encoder, image in zip(self.encoders, images, strict=True)], dim=1)

    def condition(self, points: torch.Tensor | None, vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition ``(1, To step)`` of points ``(To, P)`` and normalised vectors ``(To, S)``."""
        parts = self._parts(points, vectors)
        steps = [parts[name] for name in self.order]
        if self.constant is not None:
            steps.append(self.constant.unsqueeze(0).expand(steps[0].shape[0], -1))
        return torch.cat(steps, dim=1).reshape(1, -1)

    def _parts(self, points: torch.Tensor | None, vectors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the features ``(To, size)`` of cameras and vectors by name."""
        if points is None:
            return dict(vectors)
        places = zip(self.cameras, self.places, strict=True)
        return dict(vectors) | {name: points[:, first:end] for name, (first, end) in places}


class FeaturewiseNetwork(ObservationNetwork):
    """Puts all steps of a feature side by side, and the features one behind another, as the published UMI does.

    Args:
        order, cameras, vectors: as of :class:`ObservationNetwork`.
        windows: newest steps that the policy has of each feature.
    """

    def __init__(
        self,
        order: Sequence[str],
        cameras: Mapping[str, CameraEncoder],
        vectors: Mapping[str, int],
        windows: Mapping[str, int],
    ) -> None:
        super().__init__(order, cameras, vectors)
        self.windows = dict(windows)
        self.sizes = dict(vectors) | {name: encoder.features for name, encoder in cameras.items()}

    def size(self, steps: int) -> int:
        """Return C, whatever the steps are: each feature has a number of its own."""
        return sum(self.windows[name] * self.sizes[name] for name in self.order)

    def condition(self, points: torch.Tensor | None, vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the condition ``(1, C)`` of points ``(To, P)`` and normalised vectors ``(To, S)``."""
        parts = self._parts(points, vectors)
        return torch.cat([parts[name][-self.windows[name] :].reshape(1, -1) for name in self.order], dim=1)
