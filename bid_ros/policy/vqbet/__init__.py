"""VQ-BeT policies: codes are drawn from what one network call predicts."""

from typing import Any

from bid_ros.core.settings import parse_settings
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Policy, PolicyFamily
from bid_ros.policy.runtimes.base import Runtime
from bid_ros.policy.vqbet.codes import VqBetSettings


def _settings(content: Any) -> VqBetSettings:
    return parse_settings(VqBetSettings, content, "vqbet")


def _load(bundle: Bundle, task: Task, runtime: str | Runtime, threads: int) -> Policy:
    from bid_ros.policy.vqbet.policy import VqBetPolicy

    return VqBetPolicy(bundle, task, runtime, threads)


FAMILY = PolicyFamily("vqbet", ("encoder", "decoder"), _settings, _load, optional=("frames",), denoises=False)
