"""LeRobot's type ``vqbet``: a transformer that predicts codes of chunks, from one camera and the state."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.checkpoint import CONFIG, STATE, WEIGHTS, PolicyFolder
from bid_ros.importing.lerobot.fields import VqBetFields, parse_fields
from bid_ros.importing.lerobot.statistics import imported, needed_state, preparation
from bid_ros.importing.networks.observation import CameraEncoder, KeypointNetwork, ObservationNetwork
from bid_ros.importing.policy import GraphExample, ImportedPolicy, ImportOptions, NetworkFeature
from bid_ros.importing.tensors import fill, without_prefix
from bid_ros.importing.write_bundle import POINTS, frames_graph
from bid_ros.learning.config import VqBetConfig
from bid_ros.learning.graphs import FunctionGraph
from bid_ros.learning.vqbet.graphs import decoder_graph
from bid_ros.learning.vqbet.network import VqBet
from bid_ros.policy.vqbet.codes import LAYERS, VqBetSettings

_HEAD: Final = "action_head.map_to_cbet_preds"
_VQ: Final = "action_head.vqvae_model"
# Patterns of their names, without the prefix "vqbet.", and ours.
_RENAMED: Final = (
    (r"rgb_feature_projector\.0\.(.*)", r"project.0.\1"),
    (r"state_projector\.0\.(.*)", r"project.1.\1"),
    (r"policy\.transformer\.wte\.(.*)", r"gpt.token.\1"),
    (r"policy\.transformer\.wpe\.weight", "gpt.position.weight"),
    (r"policy\.transformer\.h\.(\d+)\.ln_1\.(.*)", r"gpt.blocks.\1.before_attention.\2"),
    (r"policy\.transformer\.h\.(\d+)\.attn\.c_attn\.(.*)", r"gpt.blocks.\1.attention.joint.\2"),
    (r"policy\.transformer\.h\.(\d+)\.attn\.c_proj\.(.*)", r"gpt.blocks.\1.attention.output.\2"),
    (r"policy\.transformer\.h\.(\d+)\.ln_2\.(.*)", r"gpt.blocks.\1.before_forward.\2"),
    (r"policy\.transformer\.h\.(\d+)\.mlp\.(.*)", r"gpt.blocks.\1.feed.\2"),
    (r"policy\.transformer\.ln_f\.(.*)", r"gpt.norm.\1"),
    (r"policy\.lm_head\.weight", "gpt.output.weight"),
    (rf"{_HEAD}_primary_bin\.0\.(.*)", r"heads.primary.\1"),
    (rf"{_HEAD}_secondary_bin\.0\.(.*)", r"heads.secondary.\1"),
    (rf"{_HEAD}_offset\.0\.(.*)", r"heads.offsets.\1"),
    (rf"{_VQ}\.(encoder|decoder)\.(.*)", r"coder.\1.\2"),
)
_BOOKS: Final = {"embed": "books", "embed_avg": "sums", "cluster_size": "counts"}
RGB = "vqbet.rgb_encoder."


def load_lerobot(network: VqBet, weights: Mapping[str, torch.Tensor]) -> None:
    """Load the weights of LeRobot's VQ-BeT, in place. Those of its image encoder (``vqbet.rgb_encoder``) are left out.

    Args:
        network: of the same sizes: two tokens a step (image, state) with queries, and linear heads.
        weights: by LeRobot's names.

    Raises:
        BidError: a weight is missing or has another shape.
    """
    given = {name.removeprefix("vqbet."): value for name, value in weights.items()}
    found = {ours: value for name, value in given.items() if (ours := _renamed(name))}
    if "gpt.position.weight" in found:
        found["gpt.position.weight"] = found["gpt.position.weight"][: network.gpt.position.num_embeddings]
    if "action_token" in given:
        found["query"] = given["action_token"].flatten()
    for part in ("weight", "bias"):
        both = given.get(f"{_HEAD}_bin.0.{part}")
        if both is not None:  # drawn independently: one layer for both codes
            found[f"heads.primary.{part}"], found[f"heads.secondary.{part}"] = both.chunk(LAYERS)
    found["coder.scale"] = torch.ones_like(network.coder.scale)  # LeRobot codes normalised chunks as they are
    for theirs, ours in _BOOKS.items():
        names = [f"{_VQ}.vq_layer.layers.{layer}._codebook.{theirs}" for layer in range(LAYERS)]
        if all(name in given for name in names):
            found[f"coder.quantiser.{ours}"] = torch.cat([given[name] for name in names])
    try:
        network.load_state_dict(found)
    except RuntimeError as error:
        raise BidError(f"weights of LeRobot's VQ-BeT do not fit: {' '.join(str(error).split())}") from error


def _renamed(name: str) -> str:
    for theirs, ours in _RENAMED:
        if match := re.fullmatch(theirs, name):
            return match.expand(ours)
    return ""


def _forecast(network: VqBet, points: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """Return the forecast ``(1, ...)`` of image features ``(To, P)`` and state ``(To, S)``."""
    outputs = network([points[None], state[None]])
    return network.forecast(outputs[:, network.steps - 1]).flat()


def convert_vqbet(folder: PolicyFolder, options: ImportOptions) -> ImportedPolicy:
    """Return the policy in the folder.

    Raises:
        BidError: a field, a statistic or a tensor is missing or impossible; or there is not one camera.
    """
    fields = parse_fields(VqBetFields, folder.config, folder.path / CONFIG)
    if options.sampler or options.sampling_steps is not None:
        raise BidError(f"{folder.path} draws codes in one step; valid is neither a sampler nor sampling steps")
    if not fields.gpt_input_dim == fields.gpt_hidden_dim == fields.gpt_output_dim:
        raise BidError(f"{folder.path / CONFIG}: gpt_input_dim, gpt_hidden_dim and gpt_output_dim differ; valid: equal")
    features = (needed_state(folder), *folder.cameras)
    if len(features) != 2:
        raise BidError(f"{folder.path}: the policy has {len(features) - 1} cameras; valid is one")
    encoder = _encoder(folder, fields, features)
    return imported(
        folder,
        features,
        kind="vqbet",
        observation_steps=fields.n_obs_steps,
        horizon=fields.n_obs_steps - 1 + fields.action_chunk_size,  # the family repeats the newest row for the past
        encoder=encoder,
        denoiser=_network(folder, fields, encoder, features[0].shape[0]),
        settings=VqBetSettings(fields.vqvae_n_embed, fields.bet_softmax_temperature),
        family="vqbet",
        graph_examples=_graph_examples,
    )


def _encoder(folder: PolicyFolder, fields: VqBetFields, features: tuple[NetworkFeature, ...]) -> ObservationNetwork:
    state, camera = features
    own = preparation(folder, camera, None, fields.crop_shape)
    points = fields.spatial_softmax_num_keypoints
    network = KeypointNetwork(fields.vision_backbone, fields.use_group_norm, own.size, points)
    fill(network, without_prefix(dict(folder.tensors), RGB), str(folder.path / WEIGHTS), RGB)
    cameras = {camera.name: CameraEncoder(own, network)}
    return ObservationNetwork([camera.name, state.name], cameras, {state.name: state.shape[0]})


def _network(folder: PolicyFolder, fields: VqBetFields, encoder: ObservationNetwork, state: int) -> VqBet:
    sizes = VqBetConfig(
        codes=fields.vqvae_n_embed,
        latent=fields.vqvae_embedding_dim,
        coder=fields.vqvae_enc_hidden_dim,
        width=fields.gpt_hidden_dim,
        layers=fields.gpt_n_layer,
        heads=fields.gpt_n_head,
        queries=True,
        head=0,
        sequential=fields.sequentially_select,
        temperature=fields.bet_softmax_temperature,
    )
    rows, future = fields.action_chunk_size, fields.n_action_pred_token - 1
    network = VqBet([encoder.points, state], fields.n_obs_steps, rows, folder.action_dim, sizes, future=future)
    try:
        load_lerobot(network, folder.tensors)
    except BidError as error:
        raise BidError(f"{folder.path / WEIGHTS}: {error}") from error
    return network


def _graph_examples(policy: ImportedPolicy) -> dict[str, GraphExample]:
    assert isinstance(policy.settings, VqBetSettings)
    encoder, network, rng = policy.encoder.eval(), policy.denoiser.eval(), np.random.default_rng(0)
    shapes = {item.name: item.shape for item in policy.features}
    steps = policy.observation_steps
    images: dict[str, Any] = {name: rng.integers(0, 256, (1, *shapes[name]), np.uint8) for name in encoder.cameras}
    feeds: dict[str, Any] = {
        POINTS: rng.standard_normal((steps, encoder.points), dtype=np.float32),
        STATE: rng.standard_normal((steps, *shapes[STATE]), dtype=np.float32),
    }
    codes = rng.integers(0, policy.settings.codes, (3, 2))
    axes = {"codes": {0: "samples"}, "rows": {0: "samples"}}
    return {
        "frames": (frames_graph(encoder), images, POINTS, {}),
        "encoder": (FunctionGraph(partial(_forecast, network), network=network), feeds, "forecast", {}),
        "decoder": (decoder_graph(network.coder), {"codes": codes}, "rows", axes),
    }
