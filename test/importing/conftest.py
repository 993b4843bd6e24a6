"""Golden policies of the package lerobot, small tasks for them, and small checkpoints made here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from archives import unpack
from safetensors.torch import save_file
from shared_files import shared_file

from bid_ros.core.task import Task, parse_task
from bid_ros.importing.networks.unet import ConditionalUnet


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """Unpack a golden case by name; the test is left out where there is no folder with them."""
    archives = shared_file("golden", "lerobot")
    folder, cases = tmp_path_factory.mktemp("golden"), {}

    def unpacked(name: str) -> SimpleNamespace:
        if name not in cases:
            unpack(archives / f"{name}.tar.xz", folder)
            cases[name] = SimpleNamespace(path=folder / name, numbers=dict(np.load(folder / name / "golden.npz")))
        return cases[name]

    return unpacked


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def task_for(policy, **changes) -> Task:
    """Return a task that observes and commands what an imported policy does, under the policy's own names."""
    observation = [
        {"name": item.name, "kind": "image" if item.is_image else "joints", "shape": list(item.shape)}
        for item in policy.features
    ]
    content = {
        "name": "imported",
        "robot": "franka",
        "rate_hz": 10,
        "observation_steps": policy.observation_steps,
        "horizon": policy.horizon,
        "observation": observation,
        "action": [{"name": "action", "kind": "joints", "shape": [policy.action_dim]}],
        "limits": {
            "workspace_min": [0.0, -0.5, 0.0],
            "workspace_max": [0.9, 0.5, 0.8],
            "max_speed": 0.5,
            "max_acceleration": 2.0,
        },
    }
    return parse_task({**content, **changes})


STATISTICS = {
    "observation.state": {
        "min": [-1.0, 0.0, 2.0],
        "max": [1.0, 0.5, 3.0],
        "mean": [0.0, 0.2, 2.5],
        "std": [0.5, 0.1, 0.2],
    },
    "action": {"min": [0.0, -1.0], "max": [2.0, 1.0], "mean": [1.0, 0.0], "std": [0.4, 0.3]},
}
CONFIG = {
    "type": "diffusion",
    "n_obs_steps": 2,
    "horizon": 8,
    "input_features": {"observation.state": {"type": "STATE", "shape": [3]}},
    "output_features": {"action": {"type": "ACTION", "shape": [2]}},
    "normalization_mapping": {"VISUAL": "MEAN_STD", "STATE": "MIN_MAX", "ACTION": "MIN_MAX"},
    "crop_shape": None,
    "down_dims": [16, 32],
    "diffusion_step_embed_dim": 8,
    "num_inference_steps": 2,
    "noise_scheduler_type": "DDIM",
    "optimizer_lr": 1e-4,
}


def weights(seed: int = 0, condition: int = 6, step: int = 8) -> dict[str, torch.Tensor]:
    """Return random weights of a small U-Net, by LeRobot's names."""
    torch.manual_seed(seed)
    network = ConditionalUnet(2, condition, (16, 32), embedding=step)
    return {f"diffusion.unet.{name}": value for name, value in network.state_dict().items()}


def write_lerobot(folder: Path, layout: str = "processors", seed: int = 0, **changes) -> Path:
    """Write a small state policy as LeRobot does; ``changes`` replace its parts.

    Args:
        folder: to write to.
        layout: ``processors`` as from 0.4.0 on, or ``buffers`` among the weights as up to 0.3.3.
        seed: of the weights.
        changes: ``config``: fields; ``tensors``, ``statistics``: functions of what would be written.
    """
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes.get("config", {})}))
    tensors = changes.get("tensors", dict)(weights(seed))
    numbers = {
        f"{feature}.{name}": torch.tensor(values) for feature, own in STATISTICS.items() for name, values in own.items()
    }
    numbers = changes.get("statistics", dict)(numbers)
    if layout == "buffers":
        groups = {"observation.state": ["normalize_inputs"], "action": ["normalize_targets", "unnormalize_outputs"]}
        for name, value in numbers.items():
            feature, _, statistic = name.rpartition(".")
            for group in groups[feature]:
                if statistic in ("min", "max"):
                    tensors[f"{group}.buffer_{feature.replace('.', '_')}.{statistic}"] = value
    else:
        for file, step in (
            ("policy_preprocessor", "normalizer_processor"),
            ("policy_postprocessor", "unnormalizer_processor"),
        ):
            state = f"{file}_step_0_{step}.safetensors"
            settings = {"norm_map": CONFIG["normalization_mapping"], "eps": 1e-8}
            steps = [{"registry_name": "device_processor", "config": {}}]
            steps.append({"registry_name": step, "config": settings, "state_file": state})
            (folder / f"{file}.json").write_text(json.dumps({"name": file, "steps": steps}))
            save_file(numbers, str(folder / state))
    save_file({name: value.clone() for name, value in tensors.items()}, str(folder / "model.safetensors"))
    return folder


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The helpers of this file: test modules cannot import it."""
    return SimpleNamespace(task_for=task_for, write_lerobot=write_lerobot, weights=weights, CONFIG=CONFIG)
