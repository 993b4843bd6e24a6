"""VQ-BeT policies: codes are drawn from what one network call predicts."""

from functools import partial

from bid_ros.core.settings import parse_settings
from bid_ros.policy.base import PolicyFamily
from bid_ros.policy.vqbet.codes import VqBetSettings
from bid_ros.policy.vqbet.policy import VqBetPolicy

SETTINGS = partial(parse_settings, VqBetSettings, where="vqbet")
FAMILY = PolicyFamily("vqbet", ("encoder", "decoder"), SETTINGS, VqBetPolicy, optional=("frames",), denoises=False)
