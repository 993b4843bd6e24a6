"""The checkpoint of the published ACT: weights alone, and the statistics of its data in a file beside them.

Zhao et al., "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware", RSS 2023; its code writes
``policy_best.ckpt`` and ``dataset_stats.pkl``. What neither says is as published: eight heads, ``resnet18``, images
of 480 x 640 px. Of its seven decoder layers the code executes the output of the first.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import read_arrays, read_state
from bid_ros.importing.lerobot.act import DETERMINISTIC, act_cameras, act_parts, check_undrawn
from bid_ros.importing.networks.observation import Preparation
from bid_ros.importing.policy import ImportedPolicy, ImportOptions, NetworkFeature
from bid_ros.importing.tensors import fill, renamed, without_prefix
from bid_ros.learning.act.transformer import ActSizes, ActTransformer
from bid_ros.policy.normalise import LinearNormaliser

STATISTICS: Final = "dataset_stats.pkl"
HEADS, BACKBONE, HEIGHT, WIDTH = 8, "resnet18", 480, 640
STATE: Final = "qpos"
MODEL: Final = "model."
IMAGES, PROJECTION = f"{MODEL}backbones.0.0.body.", f"{MODEL}input_proj."
IMAGENET: Final = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of each colour
ENSEMBLE: Final = 0.01
_RENAMED: Final = (
    (r"^transformer\.", ""),
    (r"^query_embed\.", "decoder_pos_embed."),
    (r"^latent_out_proj\.", "encoder_latent_input_proj."),
    (r"^input_proj_robot_state\.", "encoder_robot_state_input_proj."),
    (r"^additional_pos_embed\.", "encoder_1d_feature_pos_embed."),
)
# Of training, of a head that nobody reads, and of layers behind the one whose output is executed.
_UNUSED: Final = re.compile(
    r"encoder\.|cls_embed\.|encoder_(action|joint)_proj\.|latent_proj\.|pos_table$|is_pad_head\.|"
    r"transformer\.decoder\.layers\.[1-9]"
)
Tensors = Mapping[str, torch.Tensor]


def read_original(path: str, options: ImportOptions) -> ImportedPolicy | None:
    """Return the policy of a checkpoint file; None: it is none of ACT's.

    Args:
        path: the file. The statistics are beside it.
        options: with the cameras.

    Raises:
        BidError: the file cannot be read, a tensor or a statistic is missing or impossible, or no camera is known.
    """
    tensors = read_state(Path(path))
    if tensors is None:
        return None
    check_undrawn(options, path)
    if not options.cameras:
        raise BidError(f"{path} observes images and names no camera; valid is a task with one or more")
    sizes = _sizes(tensors, path)
    scale = [1 / deviation for deviation in IMAGENET[1]]
    offset = [-mean / deviation for mean, deviation in zip(*IMAGENET, strict=True)]
    prepared = {item.name: Preparation((item.shape[0], item.shape[1]), scale, offset) for item in options.cameras}
    cameras = act_cameras(prepared, sizes.size, BACKBONE, False, (tensors, path, IMAGES, PROJECTION))
    (action_dim,), rows = _of(tensors, "action_head.bias", path).shape, len(_of(tensors, "query_embed.weight", path))
    state = _of(tensors, "input_proj_robot_state.weight", path).shape[1]
    maps = [camera.network.map for camera in cameras.values()]
    network = ActTransformer(sizes, action_dim, rows, {"robot_state": state}, maps)
    others = {name: value for name, value in tensors.items() if not name.startswith((IMAGES, PROJECTION))}
    rest = {name: value for name, value in without_prefix(others, MODEL).items() if not _UNUSED.match(name)}
    fill(network, renamed(rest, _RENAMED), path, "")
    statistics = read_arrays(Path(path).with_name(STATISTICS))
    action, spread = _normaliser(statistics, "action", action_dim, path)
    return ImportedPolicy(
        source=path,
        kind="the published ACT",
        features=(NetworkFeature(STATE, (state,)), *options.cameras),
        horizon=rows,
        action_dim=action_dim,
        observation={STATE: _normaliser(statistics, STATE, state, path)[0]},
        action=action,
        action_spread=spread,
        notes=(DETERMINISTIC, *_notes(options, rows)),
        **act_parts(cameras, {STATE: state}, network),
    )


def _notes(options: ImportOptions, rows: int) -> tuple[str, ...]:
    images = ", ".join(f"{item.name} of {item.shape[0]} x {item.shape[1]} px" for item in options.cameras)
    return (
        f"the file names neither cameras nor their sizes: taken are {images}; --space says others",
        f"the file does not say how many heads the attention has: taken are {HEADS}, as published",
        "its data have 50 rows a second where they are as published: say with rate_hz of --space what they have",
        f"its project executes {rows} rows of a chunk (--action-horizon {rows}), or with --temporal_agg averages "
        f"overlapping ones (--decoder ema:ensemble={ENSEMBLE})",
    )


def _of(tensors: Tensors, name: str, path: str) -> torch.Tensor:
    found = tensors.get(MODEL + name)
    if found is None:
        raise BidError(f"{path} lacks the tensor '{MODEL}{name}'; valid is a policy_*.ckpt of the published ACT")
    return found


def _sizes(tensors: Tensors, path: str) -> ActSizes:
    layers = {name.split(".")[4] for name in tensors if name.startswith(f"{MODEL}transformer.encoder.layers.")}
    return ActSizes(
        size=_of(tensors, "additional_pos_embed.weight", path).shape[1],
        heads=HEADS,
        hidden=len(_of(tensors, "transformer.encoder.layers.0.linear1.weight", path)),
        encoder_layers=len(layers),
        decoder_layers=1,
        latent=_of(tensors, "latent_out_proj.weight", path).shape[1],
        before=f"{MODEL}transformer.encoder.norm.weight" in tensors,
    )


def _normaliser(
    statistics: Mapping[str, NDArray[np.float64]], name: str, size: int, path: str
) -> tuple[LinearNormaliser, NDArray[np.float64]]:
    """Return what maps the mean to 0 and a deviation to 1, and the deviation ``(S,)``."""
    found = []
    for statistic in ("mean", "std"):
        values = statistics.get(f"{name}_{statistic}")
        if values is None or values.shape != (size,) or not np.isfinite(values).all():
            raise BidError(
                f"{Path(path).with_name(STATISTICS)}: '{name}_{statistic}' is "
                f"{None if values is None else values.tolist()}; valid are {size} finite numbers"
            )
        found.append(values)
    mean, deviation = found
    if (deviation <= 0).any():
        raise BidError(f"{Path(path).with_name(STATISTICS)}: '{name}_std' is {deviation.min()}; valid is above 0")
    return LinearNormaliser(mean - deviation, mean + deviation), deviation
