"""VQ-BeT policies: codes are drawn from what one network call predicts."""

from typing import Any

from bid_ros.core.settings import parse_settings
from bid_ros.policy.base import PolicyFamily
from bid_ros.policy.vqbet.codes import VqBetSettings
from bid_ros.policy.vqbet.policy import VqBetPolicy


def _settings(content: Any) -> VqBetSettings:
    return parse_settings(VqBetSettings, content, "vqbet")


FAMILY = PolicyFamily("vqbet", ("encoder", "decoder"), _settings, VqBetPolicy, optional=("frames",), denoises=False)
