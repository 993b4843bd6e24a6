"""Policies of full size with random weights, as LeRobot saves them: what they take does not depend on the weights.

Usage: full_size_policies.py NAME OUT
  diffusion  one camera 96x96 (crop 84), ResNet-18, U-Net 512-1024-2048, horizon 16: the sizes of Push-T
  vqbet      the same camera, five steps, transformer of 8 layers of 512
  act        one camera 480x480, ResNet-18, transformer of 4 and 1 layers of 512, 100 rows
  flow       type multi_task_dit, which follows a flow: one camera 224x224, CLIP ViT-B/16, transformer of 6 layers of
             512, horizon 32

OUT/policy is what LeRobot writes, OUT/task.yaml a task with the same features. The sizes are the defaults of LeRobot.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
import yaml
from safetensors.torch import save_file

from bid_ros.importing.networks.clip import TextTransformer, VisionTransformer
from bid_ros.importing.networks.observation import KeypointNetwork
from bid_ros.importing.networks.resnet import trunk
from bid_ros.importing.networks.transformer import DiffusionTransformer
from bid_ros.importing.networks.unet import ConditionalUnet
from bid_ros.importing.tensors import UNUSED, renamed
from bid_ros.learning.act.transformer import ActSizes, ActTransformer

STATE, IMAGE = "observation.state", "observation.image"
MODES: Final = {"VISUAL": "MEAN_STD", "STATE": "MIN_MAX", "ACTION": "MIN_MAX"}
POINTS, CROP = 32, (84, 84)
TIMES: Final = 1000  # of a flow; the network divides by it
# VQ-BeT: width, layers, codes, size of a code, hidden size of the coder, rows, positions of a block.
WIDTH, LAYERS, CODES, LATENT, CODER, ROWS, BLOCK = 512, 8, 16, 256, 128, 5, 500
# CLIP ViT-B/16: size, hidden size, heads, layers, patch, tokens. The text is encoded at the import; its part is small.
VISION, TEXT = (768, 3072, 12, 12, 16, 197), (64, 128, 1, 1, 0, 77)
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
Tensors = dict[str, torch.Tensor]

SIZES: Final[dict[str, dict[str, Any]]] = {
    "diffusion": {"type": "diffusion", "steps": 2, "rows": 16, "state": 2, "action": 2, "image": 96},
    "vqbet": {"type": "vqbet", "steps": 5, "rows": 9, "state": 2, "action": 2, "image": 96},
    "flow": {"type": "multi_task_dit", "steps": 2, "rows": 32, "state": 7, "action": 7, "image": 224},
    "act": {"type": "act", "steps": 1, "rows": 100, "state": 14, "action": 14, "image": 480},
}
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "diffusion": {"horizon": 16, "noise_scheduler_type": "DDPM", "num_train_timesteps": 100},
    "vqbet": {"action_chunk_size": ROWS},
    "flow": {"horizon": 32, "objective": "flow_matching", "num_integration_steps": 100},
    "act": {"chunk_size": 100},
}
# Our names of a residual network, which is a sequence, and torchvision's.
TORCHVISION: Final = (
    (r"^0\.", "conv1."),
    (r"^1\.", "bn1."),
    *((rf"^{3 + level}\.", f"layer{level}.") for level in range(1, 5)),
)


def write(name: str, out: Path) -> Path:
    """Write a policy of :data:`SIZES` and its task; return the folder of the policy."""
    torch.manual_seed(0)
    sizes, folder = SIZES[name], out / "policy"
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {"diffusion": _diffusion, "vqbet": _vqbet, "flow": _flow, "act": _act}[name](sizes)
    save_file({key: value.contiguous() for key, value in tensors.items()}, str(folder / "model.safetensors"))
    config = {
        "type": sizes["type"],
        "n_obs_steps": sizes["steps"],
        "input_features": {
            STATE: {"type": "STATE", "shape": [sizes["state"]]},
            IMAGE: {"type": "VISUAL", "shape": [3, sizes["image"], sizes["image"]]},
        },
        "output_features": {"action": {"type": "ACTION", "shape": [sizes["action"]]}},
        "normalization_mapping": MODES,
        **FIELDS[name],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    _write_processors(folder, sizes)
    if name == "flow":
        (folder / "tokenizer.json").write_text(json.dumps(_tokenizer()))
    (out / "task.yaml").write_text(yaml.safe_dump(task(name), sort_keys=False))
    return folder


def task(name: str) -> dict[str, Any]:
    """Return the content of the task file for a policy."""
    sizes = SIZES[name]
    return {
        "name": f"full_size_{name}",
        "description": "place the cup",
        "robot": "franka",
        "rate_hz": 10,
        "observation_steps": sizes["steps"],
        "horizon": sizes["rows"],
        "observation": [
            {"name": IMAGE, "kind": "image", "shape": [sizes["image"], sizes["image"], 3]},
            {"name": STATE, "kind": "joints", "shape": [sizes["state"]]},
        ],
        "action": [{"name": "action", "kind": "joints", "shape": [sizes["action"]]}],
        "limits": {"workspace_min": [0.0, -0.5, 0.0], "workspace_max": [0.9, 0.5, 0.8]},
    }


def _write_processors(folder: Path, sizes: Mapping[str, Any]) -> None:
    numbers = {f"{IMAGE}.{name}": torch.full((3, 1, 1), 0.5) for name in ("mean", "std")}
    for name, size in ((STATE, sizes["state"]), ("action", sizes["action"])):
        numbers |= {f"{name}.min": -torch.ones(size), f"{name}.max": torch.ones(size)}
    for file, step in (
        ("policy_preprocessor", "normalizer_processor"),
        ("policy_postprocessor", "unnormalizer_processor"),
    ):
        state = f"{file}_step_0_{step}.safetensors"
        steps = [{"registry_name": step, "config": {"norm_map": MODES, "eps": 1e-8}, "state_file": state}]
        (folder / f"{file}.json").write_text(json.dumps({"name": file, "steps": steps}))
        save_file(numbers, str(folder / state))


def _named(prefix: str, network: torch.nn.Module) -> Tensors:
    return {f"{prefix}{name}": value for name, value in network.state_dict().items()}


def _diffusion(sizes: Mapping[str, Any]) -> Tensors:
    camera = KeypointNetwork("resnet18", True, CROP, POINTS)
    step = sizes["state"] + camera.features
    denoiser = ConditionalUnet(sizes["action"], sizes["steps"] * step, (512, 1024, 2048))
    return _named("diffusion.rgb_encoder.", camera) | _named("diffusion.unet.", denoiser)


def _act(sizes: Mapping[str, Any]) -> Tensors:
    network, channels = trunk("resnet18", groups=False)
    images = renamed(_named("", network), TORCHVISION)
    transformer = ActTransformer(
        ActSizes(WIDTH, 8, 3200, 4, 1, 32), sizes["action"], sizes["rows"], {"robot_state": sizes["state"]}
    )
    return (
        _named("model.", transformer)
        | _named("model.encoder_img_feat_input_proj.", torch.nn.Conv2d(channels, WIDTH, 1))
        | {f"model.backbone.{name}": value for name, value in images.items() if not name.endswith(UNUSED)}
    )


def _vqbet(sizes: Mapping[str, Any]) -> Tensors:
    """Name the tensors as LeRobot does."""
    camera = KeypointNetwork("resnet18", True, CROP, POINTS)
    chunk, heads, coder = ROWS * sizes["action"], "action_head.map_to_cbet_preds", "action_head.vqvae_model"
    tensors: Tensors = {"action_token": torch.randn(1, 1, WIDTH), "policy.lm_head.weight": _drawn(WIDTH, WIDTH)}
    tensors["policy.transformer.wpe.weight"] = _drawn(BLOCK, WIDTH)
    for layer in range(2):
        book = f"{coder}.vq_layer.layers.{layer}._codebook"
        tensors |= {f"{book}.{name}": torch.randn(1, CODES, LATENT) for name in ("embed", "embed_avg")}
        tensors[f"{book}.cluster_size"] = torch.ones(1, CODES)
    linear = {
        "rgb_feature_projector.0": (camera.features, WIDTH),
        "state_projector.0": (sizes["state"], WIDTH),
        "policy.transformer.wte": (WIDTH, WIDTH),
        f"{heads}_bin.0": (WIDTH, 2 * CODES),
        f"{heads}_offset.0": (WIDTH, 2 * CODES * chunk),
    }
    for name, widths in (("encoder", (chunk, CODER, CODER, LATENT)), ("decoder", (LATENT, CODER, CODER, chunk))):
        linear |= {f"{coder}.{name}.{2 * index}": widths[index : index + 2] for index in range(3)}
    norms = ["policy.transformer.ln_f"]
    for layer in range(LAYERS):
        block = f"policy.transformer.h.{layer}"
        linear |= {f"{block}.attn.c_attn": (WIDTH, 3 * WIDTH), f"{block}.attn.c_proj": (WIDTH, WIDTH)}
        linear |= {f"{block}.mlp.0": (WIDTH, 4 * WIDTH), f"{block}.mlp.2": (4 * WIDTH, WIDTH)}
        norms += [f"{block}.ln_1", f"{block}.ln_2"]
    for name, (inputs, outputs) in linear.items():
        tensors |= {f"{name}.weight": _drawn(outputs, inputs), f"{name}.bias": torch.zeros(outputs)}
    for name in norms:
        tensors |= {f"{name}.weight": torch.ones(WIDTH), f"{name}.bias": torch.zeros(WIDTH)}
    return _named("vqbet.rgb_encoder.", camera) | {f"vqbet.{name}": value for name, value in tensors.items()}


def _drawn(outputs: int, inputs: int) -> torch.Tensor:
    return torch.randn(outputs, inputs) / inputs**0.5


def _flow(sizes: Mapping[str, Any]) -> Tensors:
    size, hidden, heads, layers, patch, tokens = VISION
    vision = VisionTransformer(size, hidden, heads, layers, patch, tokens)
    width, wide, text_heads, text_layers, _, length = TEXT
    text = TextTransformer(width, wide, text_heads, text_layers, len(_vocabulary()), length)
    condition = sizes["steps"] * (sizes["state"] + size + 512)
    denoiser = DiffusionTransformer(
        sizes["action"], sizes["rows"], condition, 512, 6, 8, 256, True, 10000.0, False, TIMES
    )
    told = "observation_encoder.text_encoder."
    return (
        _named("noise_predictor.", denoiser)
        | _named("observation_encoder.vision_encoder.model.vision_model.", vision)
        | _named(f"{told}text_encoder.text_model.", text)
        | _named(f"{told}projection.", torch.nn.Linear(width, 512))
    )


def _vocabulary() -> dict[str, int]:
    return {piece: index for index, piece in enumerate(_pieces())}


def _pieces() -> Iterator[str]:
    yield from ("<|startoftext|>", "<|endoftext|>")
    for letter in LETTERS:
        yield from (letter, f"{letter}</w>")


def _tokenizer() -> dict[str, Any]:
    return {"model": {"vocab": _vocabulary(), "merges": [], "end_of_word_suffix": "</w>"}}


def main() -> None:
    """Write one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(SIZES))
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    print(write(options.name, options.out))


if __name__ == "__main__":
    main()
