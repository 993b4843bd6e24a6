"""From an observation to the condition of the denoiser: images to features, then all features in the policy's order."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.networks.resnet import map_size, trunk


class Preparation(nn.Module):  # type: ignore[misc]
    """An image uint8 ``(1, h, w, 3)`` to a float network input ``(1, 3, h', w')``.

    Args:
        size: height and width of the image.
        scale, offset: of each colour: ``value / 255 * scale + offset``.
        resize: height and width to resize to, linearly and smoothed as torchvision does; None: as it is.
        crop: height and width of the middle part that is kept; None: all.
        crop_first: whether the part is cut out before the resize; else after it.
        where: begins the sentence of an error.

    Raises:
        BidError: the part to keep is larger than the image.
    """

    def __init__(
        self,
        size: tuple[int, int],
        scale: Sequence[float],
        offset: Sequence[float],
        resize: tuple[int, int] | None = None,
        crop: tuple[int, int] | None = None,
        crop_first: bool = False,
        where: str = "",
    ) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32).reshape(3, 1, 1))
        self.register_buffer("offset", torch.tensor(offset, dtype=torch.float32).reshape(3, 1, 1))
        before = size if crop_first or resize is None else resize
        kept = crop or before
        if kept[0] > before[0] or kept[1] > before[1]:
            raise BidError(f"{where}images are cropped to {kept}; valid is up to their size {before}")
        # Half a pixel is rounded to the even one, as torchvision does.
        corner = round((before[0] - kept[0]) / 2), round((before[1] - kept[1]) / 2)
        self.resizes = resize is not None and resize != (kept if crop_first else size)
        if self.resizes and resize is not None:
            cut = (corner, kept) if crop_first else ((0, 0), size)
            rows, columns = (_resampling(cut[1][axis], resize[axis], size[axis], cut[0][axis]) for axis in (0, 1))
            self.register_buffer("rows", rows)
            self.register_buffer("columns", columns.T.contiguous())
        within = self.resizes and crop_first  # then the resize cuts too
        self.top, self.left = (0, 0) if within else corner
        self.size = resize if within and resize is not None else kept

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the network's input."""
        values = image.permute(0, 3, 1, 2).to(torch.float32) / 255
        values = values * self.scale + self.offset
        if self.resizes:
            values = self.rows @ values @ self.columns
        height, width = self.size
        return values[:, :, self.top : self.top + height, self.left : self.left + width]


class ImportedSpatialSoftmax(nn.Module):  # type: ignore[misc]
    """Expected image coordinates of learned activations: ``(B, channels, h, w)`` to ``(B, 2 K)``, x, y of each point.

    Levine et al., "End-to-End Training of Deep Visuomotor Policies", JMLR 2016, Section 5.1.
    """

    def __init__(self, channels: int, height: int, width: int, points: int) -> None:
        super().__init__()
        self.nets = nn.Conv2d(channels, points, 1)
        x = torch.linspace(-1, 1, width, dtype=torch.float64).repeat(height)
        y = torch.linspace(-1, 1, height, dtype=torch.float64).repeat_interleave(width)
        self.register_buffer("pos_grid", torch.stack([x, y], dim=1).float())

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Return the coordinates."""
        shares = self.nets(maps).flatten(2).softmax(dim=-1)
        return (shares @ self.pos_grid).flatten(1)


class KeypointNetwork(nn.Module):  # type: ignore[misc]
    """Key points of an image and a linear layer, as LeRobot and robomimic have them: ``(B, 3, h, w)`` to ``(B, F)``.

    Args:
        backbone: name of the residual network.
        groups: group normalisation in place of batch normalisation.
        size: height and width of its input.
        points: K, number of key points.
        features: F; None: 2 K.
    """

    def __init__(
        self, backbone: str, groups: bool, size: tuple[int, int], points: int, features: int | None = None
    ) -> None:
        super().__init__()
        self.backbone, channels = trunk(backbone, groups)
        self.pool = ImportedSpatialSoftmax(channels, *map_size(*size), points)
        self.features = features or 2 * points
        self.out = nn.Linear(2 * points, self.features)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        return torch.relu(self.out(self.pool(self.backbone(image))))


class PooledNetwork(nn.Module):  # type: ignore[misc]
    """A residual network and the mean of its last map: ``(B, 3, h, w)`` to ``(B, F)``. A sequence, as torchvision's."""

    def __init__(self, backbone: str, groups: bool) -> None:
        super().__init__()
        self.backbone, self.features = trunk(backbone, groups)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        return self.backbone(image).mean(dim=(2, 3))


class CameraEncoder(nn.Module):  # type: ignore[misc]
    """Preparation and network of one camera: uint8 ``(1, h, w, 3)`` to ``(1, F)``.

    Attributes:
        features: F.
    """

    def __init__(self, preparation: Preparation, network: nn.Module) -> None:
        super().__init__()
        self.preparation, self.network, self.features = preparation, network, network.features

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        return self.network(self.preparation(image))


def _resampling(kept: int, after: int, whole: int, first: int) -> torch.Tensor:
    """Return the matrix ``(after, whole)`` of a linear, smoothed resize of ``kept`` px from ``first`` on, on one axis.

    Resizing is linear and separable, so two matrix products replace it. Their ONNX form has no version-dependent
    details.
    """
    columns = torch.eye(kept, dtype=torch.float64)[None, None]
    resized = nn.functional.interpolate(
        columns, size=(after, kept), mode="bilinear", align_corners=False, antialias=True
    )
    return nn.functional.pad(resized[0, 0].float(), (first, whole - kept - first))


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
