"""An image policy in LeRobot's layout that imitates the shipped bundle for placing.

Usage:
  lerobot_franka.py write OUT     write OUT/strong and OUT/weak as LeRobot does, and OUT/space.yaml
  lerobot_franka.py train         make the weights anew, on one core

It observes one camera, the tool's position and the gripper. Its U-Net is small. Its ResNet-18 is computed in full, but
most of its channels are 0: the first 16, 16, 32 and 64 of the four levels were trained. So the weights that are kept in
test/importing/lerobot/franka_place.npz are small, and the file that is written has all 11 million.

Training: the bundle acts in 220 rehearsed episodes, half of them with one sample, half with bid+lead; up to 4 of its
samples are kept of each observation. The weights that are kept were trained in other scenes, before seeds were limited
to below 9000; they were not trained again. The first layer of the ResNet has fixed filters for blue against red, the
first level passes on what it gets, the rest learns where the cup is. Then the U-Net learns the bundle's samples from
the features.
"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from bid_ros.importing.networks.observation import ImportedSpatialSoftmax, KeypointNetwork
from bid_ros.importing.networks.resnet import ResnetBlock, map_size, normalisation
from bid_ros.importing.networks.unet import ConditionalUnet

Array = NDArray[Any]
ROOT: Final = Path(__file__).resolve().parents[1]
WEIGHTS: Final = ROOT / "test" / "importing" / "lerobot" / "franka_place.npz"
CAMERA, SIZE, POINTS = "third_person", (96, 96), 16
CHANNELS: Final = (16, 16, 32, 64)
WIDTHS, EMBEDDING, ROWS, STEPS = (32, 64), 32, 16, 2
EPISODES: Final = ((4400, 110), (4600, 110))  # first seed and number
ENCODER_STEPS, DENOISER_STEPS, WEAK_STEPS, BATCH = 2000, 10_000, 1000, 64
LEAST_RANGE: Final = 0.005  # m
STATE, IMAGE = "observation.state", f"observation.images.{CAMERA}"
MODES: Final = {"VISUAL": "MEAN_STD", "STATE": "MIN_MAX", "ACTION": "MIN_MAX"}
CONFIG: Final[dict[str, Any]] = {
    "type": "diffusion",
    "n_obs_steps": STEPS,
    "horizon": ROWS,
    "n_action_steps": 8,
    "input_features": {
        STATE: {"type": "STATE", "shape": [4]},
        IMAGE: {"type": "VISUAL", "shape": [3, *SIZE]},
    },
    "output_features": {"action": {"type": "ACTION", "shape": [4]}},
    "normalization_mapping": MODES,
    "vision_backbone": "resnet18",
    "crop_shape": None,
    "use_group_norm": True,
    "spatial_softmax_num_keypoints": POINTS,
    "use_separate_rgb_encoder_per_camera": False,
    "down_dims": list(WIDTHS),
    "kernel_size": 5,
    "n_groups": 8,
    "diffusion_step_embed_dim": EMBEDDING,
    "use_film_scale_modulation": True,
    "noise_scheduler_type": "DDIM",
    "num_train_timesteps": 100,
    "beta_schedule": "squaredcos_cap_v2",
    "prediction_type": "sample",
    "clip_sample": True,
    "num_inference_steps": 8,
}
SPACE: Final = {
    "observation": [
        {"name": STATE, "columns": [{"feature": "tool_position"}, {"feature": "gripper_width"}]},
        {"name": IMAGE, "camera": CAMERA},
    ],
    "action": [{"feature": "tool_position", "reference": "observed"}, {"feature": "gripper_width"}],
    "fixed": {"tool_rotation": [1.0, 0.0, 0.0, 0.0, -1.0, 0.0]},
}


def write(out: Path) -> None:
    """Write both policies, with files of processors as LeRobot has them from 0.4.0 on, and what their columns mean."""
    with np.load(WEIGHTS) as file:
        kept = {name: torch.from_numpy(file[name].astype(np.float32)) for name in file}
    wide = KeypointNetwork("resnet18", True, SIZE, POINTS).state_dict()
    encoder = {name: _padded(kept[f"encoder.{name}"], value.shape) for name, value in wide.items()}
    statistics = {f"{name}.{end}": kept[f"{name}.{end}"] for name in (STATE, "action") for end in ("min", "max")}
    statistics |= {f"{IMAGE}.{name}": torch.full((3, 1, 1), 0.5) for name in ("mean", "std")}
    for strength in ("strong", "weak"):
        folder = out / strength
        folder.mkdir(parents=True, exist_ok=True)
        prefix = f"{strength}."
        unet = {name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)}
        tensors = {f"diffusion.rgb_encoder.{name}": value for name, value in encoder.items()}
        tensors |= {f"diffusion.unet.{name}": value for name, value in unet.items()}
        save_file({name: value.contiguous() for name, value in tensors.items()}, str(folder / "model.safetensors"))
        (folder / "config.json").write_text(json.dumps(CONFIG, indent=1))
        for file_name, step in (
            ("policy_preprocessor", "normalizer_processor"),
            ("policy_postprocessor", "unnormalizer_processor"),
        ):
            state = f"{file_name}_step_0_{step}.safetensors"
            settings = {"norm_map": MODES, "eps": 1e-8}
            steps = [{"registry_name": step, "config": settings, "state_file": state}]
            (folder / f"{file_name}.json").write_text(json.dumps({"name": file_name, "steps": steps}))
            save_file(statistics, str(folder / state))
    (out / "space.yaml").write_text(yaml.safe_dump(SPACE, sort_keys=False))


def _padded(value: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return the tensor as the first part of one of zeros."""
    found = torch.zeros(shape)
    found[tuple(slice(0, extent) for extent in value.shape)] = value
    return found


class Narrow(nn.Module):  # type: ignore[misc]
    """The channels of a ResNet-18 that are not 0, with key points as LeRobot has them."""

    def __init__(self) -> None:
        super().__init__()
        first = [nn.Conv2d(3, CHANNELS[0], 7, 2, 3, bias=False), normalisation(CHANNELS[0], True)]
        levels, inputs = [], CHANNELS[0]
        for level, width in enumerate(CHANNELS):
            blocks = ResnetBlock(inputs, width, 2 if level else 1, True), ResnetBlock(width, width, 1, True)
            levels.append(nn.Sequential(*blocks))
            inputs = width
        self.backbone = nn.Sequential(*first, nn.ReLU(), nn.MaxPool2d(3, 2, 1), *levels)
        self.pool = ImportedSpatialSoftmax(inputs, *map_size(*SIZE), POINTS)
        self.out = nn.Linear(2 * POINTS, 2 * POINTS)
        with torch.no_grad():
            self.backbone[0].weight.copy_(_filters())
            for value in self.backbone[4].parameters():
                value.zero_()  # a block adds nothing then
        self.backbone[:5].requires_grad_(False)

    def seen(self, images: Array) -> torch.Tensor:
        """Return what the fixed part makes of images uint8 ``(B, h, w, 3)``."""
        with torch.no_grad():
            return self.backbone[:5](torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        return torch.relu(self.out(self.pool(self.backbone[5:](seen))))


def _filters() -> torch.Tensor:
    """Return filters ``(16, 3, 7, 7)``: of two colours four spreads, and slopes both ways along both axes."""
    y, x = np.mgrid[-3:4, -3:4]
    shapes = [np.exp(-(x * x + y * y) / (2 * spread**2)) for spread in (0.7, 1.1, 1.7, 3.0)]
    shapes += [slope * np.exp(-(x * x + y * y) / (2 * 1.5**2)) for slope in (x, -x, y, -y)]
    scaled = [shape / np.abs(shape).sum() for shape in shapes]
    colours = ((-1, 0, 1), (1, 0, -1))  # blue against red, and the other way round
    return torch.tensor(np.array([np.multiply.outer(colour, shape) for colour in colours for shape in scaled])).float()


def rehearsed() -> dict[str, Array]:
    """Return observations, the cup's place and the bundle's samples of every decision, and where episodes begin."""
    from bid_ros.core.observation import Observation
    from bid_ros.episodes.rehearsal import Rehearsal
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.decide import DecisionMaker, DecisionRecord, bundle_decoder
    from bid_ros.policy.registry import load_policy
    from bid_ros.system.folder import find_system

    system = find_system("franka_place")
    task, stage = system.task, system.stage()
    bundle = load_bundle(ROOT / "models" / "franka_place", task)
    policy = load_policy(bundle, task, "auto")
    kept: dict[str, list[Any]] = {name: [] for name in ("images", "state", "cup", "chunks", "first")}

    class Listener(DecisionMaker):
        def decide(self, observation: Observation) -> DecisionRecord | None:
            record = super().decide(observation)
            if record is not None:
                values = observation.values
                kept["images"].append(values[CAMERA])
                kept["state"].append(np.concatenate([values["tool_position"], values["gripper_width"]], axis=1))
                kept["cup"].append(stage.bodies["cup"][:2])
                kept["chunks"].append(np.resize(record.strong, (4, *record.strong.shape[1:])))
            return record

    makers = [Listener(policy, bundle_decoder(name, bundle, task, 4, 1), task) for name in ("vanilla", "bid+lead")]
    for first_seed, count in EPISODES:
        rng = np.random.default_rng(first_seed)
        for index in range(count):
            rehearsal = Rehearsal(task, makers[index % 2], stage)
            rehearsal.run(index, first_seed + index, float(rng.uniform(0, 0.04)))
    stage.close()
    return {name: np.array(values) for name, values in kept.items() if values}


def trained_encoder(images: Array, cups: Array) -> Narrow:
    """Return a network whose features say where the cup is: images uint8 ``(T, h, w, 3)``, cups ``(T, 2)`` m."""
    torch.manual_seed(0)
    network, rng = Narrow(), np.random.default_rng(0)
    head = nn.Linear(2 * POINTS, 2)
    seen = torch.cat([network.seen(images[first : first + BATCH]).half() for first in range(0, len(images), BATCH)])
    targets = torch.tensor((cups - cups.mean(axis=0)) / cups.std(axis=0)).float()
    free = [value for value in (*network.parameters(), *head.parameters()) if value.requires_grad]
    optimiser = torch.optim.AdamW(free, weight_decay=1e-4)
    for step in range(ENCODER_STEPS):
        rows = rng.integers(0, len(images), BATCH)
        bright = 1 + 0.2 * (torch.rand(BATCH, 1, 1, 1) - 0.5)
        found = head(network(seen[rows].float() * bright))
        _descend(optimiser, nn.functional.smooth_l1_loss(found, targets[rows], beta=0.05), step, ENCODER_STEPS)
    return network


def trained_denoisers(condition: torch.Tensor, chunks: torch.Tensor) -> tuple[ConditionalUnet, ConditionalUnet]:
    """Return the averaged U-Net after all steps and after a tenth, of conditions ``(T, C)`` and ``(T, K, H, D)``."""
    from bid_ros.policy.diffusion.sampler import cumulative_alphas

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    network = ConditionalUnet(chunks.shape[-1], condition.shape[1], WIDTHS, embedding=EMBEDDING)
    average = copy.deepcopy(network).requires_grad_(False)
    weak, alphas = average, torch.tensor(cumulative_alphas(100)).float()
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=1e-4)
    for step in range(DENOISER_STEPS):
        rows = torch.from_numpy(rng.integers(0, len(chunks), BATCH))
        clean = chunks[rows, torch.from_numpy(rng.integers(0, chunks.shape[1], BATCH))]
        levels = torch.randint(0, 100, (BATCH,))
        left = alphas[levels][:, None, None]
        noisy = left.sqrt() * clean + (1 - left).sqrt() * torch.randn_like(clean)
        found = network(noisy, levels, condition[rows])
        _descend(optimiser, nn.functional.mse_loss(found, clean), step, DENOISER_STEPS)
        share = 1 - min(0.999, 1 - (2 + step) ** -0.75)
        for mean, value in zip(average.parameters(), network.parameters(), strict=True):
            mean.lerp_(value.detach(), share)
        if step + 1 == WEAK_STEPS:
            weak = copy.deepcopy(average)
    return average, weak


def _descend(optimiser: torch.optim.Optimizer, loss: torch.Tensor, step: int, steps: int) -> None:
    rate = 2e-3 * min(1, step / 50) * (0.5 * (1 + np.cos(np.pi * step / steps)) + 0.005)
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def train() -> None:
    """Rehearse, train and keep the weights, in half precision."""
    torch.set_num_threads(1)
    found = rehearsed()
    encoder = trained_encoder(found["images"][:, -1], found["cup"])
    kept = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    with torch.no_grad():
        features = torch.stack([_features(encoder, images) for images in found["images"].swapaxes(0, 1)], dim=1)
    state, chunks = found["state"], found["chunks"]
    action = np.concatenate([chunks[..., :3] - state[:, None, -1:, :3], chunks[..., -1:]], axis=-1)
    normal = []
    for name, values in ((STATE, state), ("action", action)):
        low, high = values.reshape(-1, 4).min(axis=0), values.reshape(-1, 4).max(axis=0)
        still = high - low < LEAST_RANGE  # a gripper that holds; a measured one moves a little
        low, high = np.where(still, low - LEAST_RANGE, low), np.where(still, high + LEAST_RANGE, high)
        kept |= {f"{name}.min": torch.tensor(low), f"{name}.max": torch.tensor(high)}
        normal.append(torch.tensor(2 * (values - low) / (high - low) - 1).float())
    condition = torch.cat([normal[0], features], dim=-1).flatten(1)
    for strength, network in zip(("strong", "weak"), trained_denoisers(condition, normal[1]), strict=True):
        kept |= {f"{strength}.{name}": value for name, value in network.state_dict().items()}
    save(kept)


def _features(encoder: Narrow, images: Array) -> torch.Tensor:
    parts = [encoder(encoder.seen(images[first : first + BATCH])) for first in range(0, len(images), BATCH)]
    return torch.cat(parts)


def save(kept: dict[str, torch.Tensor]) -> None:
    """Write the weights in half precision, and the statistics as they are."""
    arrays = {name: value.numpy() for name, value in kept.items()}
    small = {name: value.astype(np.float32 if value.ndim < 2 else np.float16) for name, value in arrays.items()}
    np.savez_compressed(WEIGHTS, **small)


def main() -> None:
    """Write or train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("write").add_argument("out", type=Path)
    verbs.add_parser("train")
    options = parser.parse_args()
    if options.verb == "write":
        write(options.out)
    else:
        train()


if __name__ == "__main__":
    main()
