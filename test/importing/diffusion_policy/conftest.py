"""Checkpoint files in the layout of the published Diffusion Policy, made of networks of our own."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from bid_ros.importing.networks.transformer import ChunkTransformer
from bid_ros.importing.networks.unet import ConditionalUnet

SCHEDULER = {
    "_target_": "diffusers.schedulers.scheduling_ddpm.DDPMScheduler",
    "num_train_timesteps": 100,
    "beta_start": 0.0001,
    "beta_end": 0.02,
    "beta_schedule": "squaredcos_cap_v2",
    "variance_type": "fixed_small",
    "clip_sample": True,
    "prediction_type": "epsilon",
}
COMMON = {"noise_scheduler": SCHEDULER, "horizon": 8, "n_action_steps": 4, "n_obs_steps": 2, "num_inference_steps": 10}
UNET = {
    "diffusion_step_embed_dim": 8,
    "down_dims": [16, 32],
    "kernel_size": 5,
    "n_groups": 8,
    "cond_predict_scale": True,
}
UNET_LOWDIM = {
    "_target_": "diffusion_policy.policy.diffusion_unet_lowdim_policy.DiffusionUnetLowdimPolicy",
    "model": {"_target_": "diffusion_policy.model.ConditionalUnet1D", "input_dim": 2, "global_cond_dim": 6, **UNET},
    **COMMON,
    "obs_dim": 3,
    "action_dim": 2,
    "obs_as_global_cond": True,
    "obs_as_local_cond": False,
    "pred_action_steps_only": False,
    "oa_step_convention": True,
}
TRANSFORMER = {"n_layer": 2, "n_head": 2, "n_emb": 16, "causal_attn": True, "time_as_cond": True, "n_cond_layers": 0}
TRANSFORMER_LOWDIM = {
    "_target_": "diffusion_policy.policy.diffusion_transformer_lowdim_policy.DiffusionTransformerLowdimPolicy",
    "model": {"_target_": "diffusion_policy.model.TransformerForDiffusion", "horizon": 8, "cond_dim": 3, **TRANSFORMER},
    **COMMON,
    "obs_dim": 3,
    "action_dim": 2,
    "obs_as_cond": True,
    "pred_action_steps_only": False,
}
NORMALISER = {
    "obs": ([2.0, 1.0, 0.5], [0.1, -0.2, 0.3]),
    "action": ([1.0, 2.0], [0.0, -1.0]),
}


def published(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the weights of a network of ours by their published names."""
    found = {}
    for name, value in network.state_dict().items():
        parts = name.split(".")
        if parts[0] in ("down_modules", "up_modules") and parts[2] == "2":
            parts.insert(3, "conv")
        theirs = ".".join(parts).replace("conv1.block", "blocks.0.block").replace("conv2.block", "blocks.1.block")
        found[f"model.{theirs}"] = value.clone()
    return found


def normaliser(features: dict[str, tuple[list[float], list[float]]]) -> dict[str, torch.Tensor]:
    """Return the tensors of the normalisers."""
    return {
        f"normalizer.params_dict.{name}.{part}": torch.tensor(values)
        for name, pair in features.items()
        for part, values in zip(("scale", "offset"), pair, strict=True)
    }


def unet(seed: int = 0, condition: int = 6) -> ConditionalUnet:
    torch.manual_seed(seed)
    return ConditionalUnet(2, condition, (16, 32), embedding=8).eval()


def transformer(seed: int = 0, condition_layers: int = 0, causal: bool = True) -> ChunkTransformer:
    torch.manual_seed(seed)
    network = ChunkTransformer(2, 8, 2, 3, 16, 2, 2, condition_layers, causal).eval()
    for value in network.parameters():
        torch.nn.init.normal_(value, std=0.3)
    return network


def write(path: Path, policy: dict, tensors: dict[str, torch.Tensor], **changes) -> Path:
    """Write a checkpoint as a training does.

    Args:
        path: of the file.
        policy: ``cfg.policy``.
        tensors: of the averaged network; those of the plain one are others.
        changes: of the content.
    """
    cfg = omegaconf({"policy": copy.deepcopy(policy), "training": {"use_ema": True}})
    plain = {name: value + 1 if value.is_floating_point() else value for name, value in tensors.items()}
    content = {
        "cfg": cfg,
        "state_dicts": {"model": plain, "ema_model": tensors, "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}}},
        "pickles": {"epoch": b"cos\nsystem\n(S'true'\ntR."},
    }
    torch.save({**content, **changes}, path)
    return path


def omegaconf(content):
    """Return a configuration as objects whose pickles look like those of omegaconf."""
    module = sys.modules["omegaconf.dictconfig"]
    if isinstance(content, dict):
        node = module.DictConfig()
        node.__dict__.update(_metadata=None, _parent=None, _content={k: omegaconf(v) for k, v in content.items()})
        return node
    if isinstance(content, list):
        node = module.ListConfig()
        node.__dict__.update(_metadata=None, _content=[omegaconf(item) for item in content])
        return node
    node = module.AnyNode()
    node.__dict__.update(_metadata=None, _val=content)
    return node


@pytest.fixture(autouse=True)
def _omegaconf(monkeypatch):
    """Stand-ins for the classes of omegaconf, which is not installed."""
    module = ModuleType("omegaconf.dictconfig")
    for name in ("DictConfig", "ListConfig", "AnyNode"):
        setattr(module, name, type(name, (), {"__module__": module.__name__, "__qualname__": name}))
    monkeypatch.setitem(sys.modules, "omegaconf", ModuleType("omegaconf"))
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def layout() -> SimpleNamespace:
    """The helpers of this file: test modules cannot import it."""
    return SimpleNamespace(
        write=write,
        omegaconf=omegaconf,
        published=published,
        normaliser=normaliser,
        unet=unet,
        transformer=transformer,
        SCHEDULER=SCHEDULER,
        COMMON=COMMON,
        UNET=UNET,
        UNET_LOWDIM=UNET_LOWDIM,
        TRANSFORMER=TRANSFORMER,
        TRANSFORMER_LOWDIM=TRANSFORMER_LOWDIM,
        NORMALISER=NORMALISER,
    )
