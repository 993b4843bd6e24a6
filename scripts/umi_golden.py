"""Let the published encoder of UMI compute what the tests hold ours against, with weights that a name and a shape give.

Usage: umi_golden.py CHECKOUT TIMM OUT

CHECKOUT: https://github.com/real-stanford/universal_manipulation_interface, its encoder of commit c34ba9c6.
TIMM: folder of timm 0.9.7 (pip install --no-deps --target TIMM timm==0.9.7).
OUT: conditions by case, and each case's tensors.
torchvision and huggingface_hub are stand-ins: without transforms and pretrained weights the encoder uses nothing of
them.
"""

from __future__ import annotations

import enum
import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar, Final
from unittest.mock import MagicMock
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

SMALL: Final = {"embed_dim": 128, "depth": 2, "num_heads": 2, "img_size": 32}
VECTORS: Final = {"robot0_gripper_width": 1, "robot0_eef_pos": 3, "robot0_eef_rot_axis_angle": 6}
# Case: model, pixels, aggregation, group normalisation, cameras, ratio, arguments of the model.
CASES: Final[dict[str, tuple[Any, ...]]] = {
    "patches_clip": ("vit_base_patch16_clip_224", 32, "attention_pool_2d", True, 2, 32, SMALL),
    "patches": ("vit_tiny_patch16_224", 32, None, True, 1, 32, SMALL),
    "avg": ("resnet18", 64, "avg", True, 1, 32, {}),
    "max": ("resnet18", 64, "max", True, 1, 32, {}),
    "soft_attention": ("resnet18", 64, "soft_attention", True, 1, 32, {}),
    "spatial_embedding": ("resnet18", 64, "spatial_embedding", True, 1, 32, {}),
    "attention_pool_2d": ("resnet18", 64, "attention_pool_2d", True, 1, 32, {}),
    "batch_normalisation": ("resnet18", 64, "avg", False, 1, 16, {}),
}
MISSING: Final = (
    *("torchvision", "torchvision.transforms", "torchvision.transforms.functional", "torchvision.datasets"),
    *("torchvision.ops", "torchvision.ops.misc", "torchvision.models", "torchvision.models.feature_extraction"),
    *("huggingface_hub", "huggingface_hub.utils"),
)


def weight(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return numbers of a tensor: the same for the same name and shape, on any computer."""
    values = np.random.RandomState(crc32(name.encode())).standard_normal(shape).astype(np.float32)
    if name.endswith("running_var"):
        return 1 + np.abs(values)
    if len(shape) > 1:
        return np.asarray(values / np.sqrt(np.prod(shape[1:])), dtype=np.float32)
    return np.asarray(values * 0.1 + float(name.endswith("weight")), dtype=np.float32)


def inputs(pixels: int, cameras: int) -> dict[str, NDArray[Any]]:
    """Return two steps of each feature: images uint8 ``(2, 3, h, w)``, vectors float32 ``(2, S)``."""
    rng = np.random.RandomState(1)
    found: dict[str, NDArray[Any]] = {
        f"camera{index}_rgb": rng.randint(0, 256, (2, 3, pixels, pixels)).astype(np.uint8) for index in range(cameras)
    }
    return found | {name: rng.standard_normal((2, size)).astype(np.float32) for name, size in VECTORS.items()}


class StandIn(ModuleType):
    """A package that is not installed. Whatever is taken from it does nothing."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock


def stand_in() -> None:
    """Put stand-ins where packages are missing."""
    for name in MISSING:
        module = StandIn(name)
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    names = ("NEAREST", "BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS")
    mode = enum.Enum("mode", {name: name.lower() for name in names})
    for name in ("torchvision.transforms", "torchvision.transforms.functional"):
        sys.modules[name].InterpolationMode = mode


def computed(case: tuple[Any, ...]) -> tuple[NDArray[np.float32], dict[str, list[int]]]:
    """Return the published encoder's condition of a case, and the shapes of its tensors by name."""
    import timm
    import torch
    from diffusion_policy.model.vision.timm_obs_encoder import TimmObsEncoder

    model, pixels, way, groups, cameras, ratio, sizes = case
    create = timm.create_model
    given = inputs(pixels, cameras)
    meta: dict[str, Any] = {
        name: {"shape": list(value.shape[1:]), "horizon": 2, "type": "rgb" if value.ndim == 4 else "low_dim"}
        for name, value in given.items()
    }
    timm.create_model = lambda **options: create(**options, **sizes)
    try:
        network = TimmObsEncoder(
            {"obs": meta},
            model,
            False,
            False,
            "",
            None,
            use_group_norm=groups,
            feature_aggregation=way,
            downsample_ratio=ratio,
        ).eval()
    finally:
        timm.create_model = create
    state = network.state_dict()
    network.load_state_dict(
        {
            name: torch.from_numpy(weight(name, tuple(value.shape))) if value.is_floating_point() else value
            for name, value in state.items()
        }
    )
    feeds = {
        name: torch.from_numpy(value[None].astype(np.float32) / (255 if value.ndim == 4 else 1))
        for name, value in given.items()
    }
    with torch.no_grad():
        found = network(feeds)[0].numpy()
    return found, {name: list(value.shape) for name, value in state.items() if value.numel()}


def main() -> None:
    """Write the file."""
    checkout, timm_folder, out = sys.argv[1:]
    sys.path[:0] = [checkout, timm_folder]
    stand_in()
    found, tensors = {}, {}
    for name, case in CASES.items():
        found[name], tensors[name] = computed(case)
    np.savez_compressed(out, tensors=json.dumps(tensors), **found)


if __name__ == "__main__":
    main()
