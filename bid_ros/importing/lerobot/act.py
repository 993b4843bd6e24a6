"""LeRobot's ACT: one chunk for one observation."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.checkpoint import CONFIG, ENVIRONMENT, STATE, WEIGHTS, PolicyFolder
from bid_ros.importing.lerobot.fields import ActFields, parse_fields
from bid_ros.importing.lerobot.statistics import imported, needed_state, preparation
from bid_ros.importing.networks.act import MapTokens
from bid_ros.importing.networks.observation import CameraEncoder, ObservationNetwork, Preparation
from bid_ros.importing.networks.resnet import TORCHVISION, trunk
from bid_ros.importing.policy import GraphExample, ImportedPolicy, ImportOptions
from bid_ros.importing.tensors import check_prefixes, fill, renamed, without_prefix
from bid_ros.importing.write_bundle import POINTS, frames_graph
from bid_ros.learning.act.transformer import ActSizes, ActTransformer
from bid_ros.learning.graphs import FunctionGraph
from bid_ros.policy.act.settings import ActSettings

MODEL: Final = "model."
BACKBONE, PROJECTION, VAE = (f"{MODEL}{name}" for name in ("backbone.", "encoder_img_feat_input_proj.", "vae_encoder"))
VECTORS: Final = {STATE: "robot_state", ENVIRONMENT: "env_state"}  # the names of their tensors, in the tokens' order
DETERMINISTIC: Final = (
    "the policy is deterministic: it has one chunk for an observation, so N is 1, and no decoder can choose; "
    "--also adds checkpoints to choose among"
)


def convert_act(folder: PolicyFolder, options: ImportOptions) -> ImportedPolicy:
    """Return the policy in the folder.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many.
    """
    where, weights = str(folder.path / CONFIG), str(folder.path / WEIGHTS)
    fields = parse_fields(ActFields, folder.config, folder.path / CONFIG)
    check_undrawn(options, str(folder.path))
    sizes = _sizes(fields, where)
    features = (needed_state(folder), *folder.cameras, *filter(None, [folder.vector(ENVIRONMENT)]))
    prepared = {item.name: preparation(folder, item, None, None) for item in features if item.is_image}
    tensors = {name: value for name, value in folder.tensors.items() if not (fields.use_vae and name.startswith(VAE))}
    cameras = act_cameras(
        prepared,
        sizes.size,
        fields.vision_backbone,
        bool(fields.replace_final_stride_with_dilation),
        (tensors, weights, BACKBONE, PROJECTION),
    )
    vectors = {name: item.shape[0] for name in VECTORS for item in features if item.name == name}
    network = ActTransformer(
        sizes,
        folder.action_dim,
        fields.chunk_size,
        {VECTORS[name]: size for name, size in vectors.items()},
        [camera.network.map for camera in cameras.values()],
    )
    rest = {name: value for name, value in tensors.items() if not (cameras and name.startswith((BACKBONE, PROJECTION)))}
    check_prefixes(rest, (MODEL,), weights)
    fill(network, without_prefix(rest, MODEL), weights, MODEL)
    return imported(
        folder,
        features,
        kind="act",
        horizon=fields.chunk_size,
        more_notes=(DETERMINISTIC, execution(fields.n_action_steps, fields.temporal_ensemble_coeff)),
        provenance={"executed": {"rows": fields.n_action_steps, "ensemble": fields.temporal_ensemble_coeff}},
        **act_parts(cameras, vectors, network),
    )


def check_undrawn(options: ImportOptions, source: str) -> None:
    """Raise BidError if a person says how samples are drawn."""
    if options.sampler or options.sampling_steps is not None:
        raise BidError(f"{source} draws nothing; valid is neither a sampler nor sampling steps")


def _sizes(fields: ActFields, where: str) -> ActSizes:
    if fields.n_action_steps > fields.chunk_size:
        raise BidError(f"{where}: n_action_steps is {fields.n_action_steps}; valid is up to {fields.chunk_size}")
    try:
        return ActSizes(
            fields.dim_model,
            fields.n_heads,
            fields.dim_feedforward,
            fields.n_encoder_layers,
            fields.n_decoder_layers,
            fields.latent_dim,
            fields.feedforward_activation == "gelu",
            fields.pre_norm,
        )
    except BidError as error:
        raise BidError(f"{where}: {error}") from error


def act_cameras(
    prepared: Mapping[str, Preparation],
    size: int,
    backbone: str,
    dilated: bool,
    read: tuple[Mapping[str, torch.Tensor], str, str, str],
) -> dict[str, CameraEncoder]:
    """Return the encoder of each camera; all share one network, which makes a token of each place of a map.

    Args:
        prepared: how each camera's image becomes the network's input.
        size: of a token.
        backbone, dilated: as of :func:`bid_ros.importing.networks.resnet.trunk`.
        read: tensors, their file, and how the names of the residual network and of the projection begin.

    Raises:
        BidError: the network does not exist, or a tensor is missing or impossible.
    """
    if not prepared:
        return {}
    tensors, where, first, second = read
    network, channels = trunk(backbone, groups=False, dilated=dilated)
    projection = nn.Conv2d(channels, size, 1)
    fill(network, renamed(without_prefix(tensors, first), TORCHVISION), where, first)
    fill(projection, without_prefix(tensors, second), where, second)
    return {
        name: CameraEncoder(own, MapTokens(network, projection, own.size, dilated)) for name, own in prepared.items()
    }


def act_parts(
    cameras: Mapping[str, CameraEncoder], vectors: Mapping[str, int], network: ActTransformer
) -> dict[str, Any]:
    """Return what all imported ACT policies have in common, by the fields of :class:`ImportedPolicy`."""
    return {
        "observation_steps": 1,
        "encoder": ObservationNetwork([*vectors, *cameras], cameras, vectors),
        "denoiser": network,
        "settings": ActSettings(),
        "family": "act",
        "graph_examples": _graph_examples,
    }


def execution(rows: int, ensemble: float | None) -> str:
    """Return how the policy's own project executes its chunks, in the words of the command line."""
    if ensemble is not None:
        return f"its project averages overlapping chunks with coefficient {ensemble}: --decoder ema:ensemble={ensemble}"
    return f"its project executes {rows} rows of a chunk: --action-horizon {rows}; 1 decides at every step"


def _chunk(network: ActTransformer, images: bool, *values: torch.Tensor) -> torch.Tensor:
    """Return the chunk ``(1, R D)`` of tokens ``(1, P)``, where there are cameras, and vectors ``(1, S)``."""
    given = list(values)
    points = given.pop(0) if images else None
    return network(points, given).flatten(1)


def _graph_examples(policy: ImportedPolicy) -> dict[str, GraphExample]:
    encoder, network, rng = policy.encoder.eval(), policy.denoiser.eval(), np.random.default_rng(0)
    shapes = {item.name: item.shape for item in policy.features}
    feeds: dict[str, Any] = {
        name: rng.standard_normal((1, *shapes[name]), dtype=np.float32) for name in encoder.vectors
    }
    examples: dict[str, GraphExample] = {}
    if encoder.cameras:
        images: dict[str, Any] = {name: rng.integers(0, 256, (1, *shapes[name]), np.uint8) for name in encoder.cameras}
        examples["frames"] = (frames_graph(encoder), images, POINTS, {})
        feeds = {POINTS: rng.standard_normal((1, encoder.points), dtype=np.float32), **feeds}
    graph = FunctionGraph(partial(_chunk, network, bool(encoder.cameras)), network=network)
    examples["encoder"] = (graph, feeds, "chunk", {})
    return examples
