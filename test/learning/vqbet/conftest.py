"""A VQ-BeT policy that LeRobot wrote, with the numbers that LeRobot computes from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from archives import unpack
from shared_files import shared_file

from bid_ros.importing.lerobot.vqbet import load_lerobot
from bid_ros.learning import TrainConfig
from bid_ros.learning.config import VqBetConfig
from bid_ros.learning.vqbet.network import VqBet


@pytest.fixture(scope="session")
def make_vqbet(make_config: Callable[..., TrainConfig]) -> Callable[..., TrainConfig]:
    """Makes the configuration of a short run; fields of ``vqbet`` go into the mapping of that name."""

    def make(vqbet: dict | None = None, reference: str = "tool", **changes: object) -> TrainConfig:
        small = {
            "codes": 4,
            "latent": 8,
            "coder": 32,
            "coder_steps": 50,
            "coder_learning_rate": 3e-3,
            "width": 32,
            "layers": 2,
            "heads": 2,
        }
        sizes = VqBetConfig(**{**small, "head": 32, **(vqbet or {})})
        return make_config(family="vqbet", action_reference=reference, vqbet=sizes, **changes)

    return make


@pytest.fixture(scope="session")
def golden(tmp_path_factory) -> SimpleNamespace:
    """Numbers, weights and the network with these weights."""
    archive = shared_file("golden", "lerobot", "vqbet_image.tar.xz")
    folder = tmp_path_factory.mktemp("vqbet")
    unpack(archive, folder)
    folder /= "vqbet_image"
    config = json.loads((folder / "policy" / "config.json").read_text())
    weights = read_safetensors(folder / "policy" / "model.safetensors")
    sizes = VqBetConfig(
        codes=config["vqvae_n_embed"],
        latent=config["vqvae_embedding_dim"],
        coder=config["vqvae_enc_hidden_dim"],
        width=config["gpt_hidden_dim"],
        layers=config["gpt_n_layer"],
        heads=config["gpt_n_head"],
        queries=True,
        head=0,
        sequential=config["sequentially_select"],
        temperature=config["bet_softmax_temperature"],
    )
    network = VqBet([64, 2], 5, config["action_chunk_size"], 2, sizes, future=config["n_action_pred_token"] - 1)
    load_lerobot(network, weights)
    numbers = dict(np.load(folder / "golden.npz"))
    statistics = read_safetensors(folder / "policy" / "policy_preprocessor_step_3_normalizer_processor.safetensors")
    return SimpleNamespace(
        numbers=numbers, weights=weights, network=network.eval(), config=sizes, statistics=statistics
    )


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Read float tensors: eight bytes with the length of a JSON header, the header, the numbers."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, found = json.loads(content[8 : 8 + length]), {}
    for name, item in header.items():
        if name != "__metadata__" and item["dtype"] == "F32":
            first, last = (8 + length + place for place in item["data_offsets"])
            values = np.frombuffer(content[first:last], dtype="<f4").reshape(item["shape"])
            found[name] = torch.from_numpy(values.copy())
    return found
