"""The names of LeRobot's weights of VQ-BeT (versions 0.3 to 0.6), and ours."""

import re
from collections.abc import Mapping
from typing import Final

import torch

from bid_ros.core.errors import BidError
from bid_ros.learning.vqbet.network import VqBet
from bid_ros.policy.vqbet.codes import LAYERS

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
