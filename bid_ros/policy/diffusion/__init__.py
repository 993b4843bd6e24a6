"""Diffusion policies: DDIM sampling over a bundle's graphs."""

from typing import Any, Final

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import parse_settings
from bid_ros.policy.base import PolicyFamily
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.diffusion.sampler import DiffusionConfig

FROM_TRAINING: Final = ("train_steps", "beta_schedule", "prediction", "sampling_steps", "clip")


def _settings(content: Any) -> DiffusionConfig:
    """Every field must be said except those that do not come from training."""
    for name in FROM_TRAINING:
        if isinstance(content, dict) and name not in content:
            raise BundleError(f"diffusion: the field '{name}' is missing")
    return parse_settings(DiffusionConfig, content, "diffusion")


FAMILY = PolicyFamily("diffusion", ("encoder", "denoiser"), _settings, DiffusionPolicy, optional=("frames", "sampler"))
