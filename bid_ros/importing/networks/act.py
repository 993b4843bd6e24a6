"""What an image is to ACT: a token for each place of a residual network's map."""

import torch
from torch import nn

from bid_ros.importing.networks.resnet import map_size


class MapTokens(nn.Module):  # type: ignore[misc]
    """A token for each place of an image's map: ``(B, 3, h, w)`` to ``(B, h' w' size)``, row by row.

    Args:
        backbone: residual network; cameras share it.
        projection: its channels to a token's; cameras share it.
        size: height and width of the image.
        dilated: as of :func:`bid_ros.importing.networks.resnet.trunk`.

    Attributes:
        map: height and width of the map.
        features: h' w' size.
    """

    def __init__(self, backbone: nn.Module, projection: nn.Conv2d, size: tuple[int, int], dilated: bool) -> None:
        super().__init__()
        self.backbone, self.projection, self.map = backbone, projection, map_size(*size, dilated)
        self.features = self.map[0] * self.map[1] * projection.out_channels

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the tokens."""
        return self.projection(self.backbone(image)).flatten(2).transpose(1, 2).flatten(1)
