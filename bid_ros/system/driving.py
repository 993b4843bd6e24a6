"""A run that a person drives: its arguments, which ``bid teleop`` and its launch file share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from bid_ros.system.run import RunArguments
from bid_ros.teleop.base import DEVICES

KEYBOARD: Final = "keyboard"
MINUTES: Final = 120.0  # s for an episode of a person, who is slower than a policy
# What concerns a policy alone is left out.
ARGUMENTS: Final = (
    *("robot_ip", "peers", "device_settings", "moving", "episodes", "seed", "timeout"),
    *("unstaged", "prepare", "rviz", "record", "out", "namespace", "parameters", "log_level"),
)
DEFAULTS: Final[Mapping[str, Any]] = {"moving": 0.0, "timeout": MINUTES, "episodes": 5, "out": "out/teleop"}


def driven(arguments: RunArguments, device: str) -> tuple[RunArguments, str]:
    """Return the arguments of a run with a device at the controls, and what its driver must know.

    Raises:
        BidError: no such device, a setting of it is not valid, or it needs what this terminal lacks.
    """
    found = DEVICES.find(device)
    settings, line = found.completed(arguments.device_settings)
    known = "\n".join(text for text in (line, found.help) if text)
    limit_s = arguments.timeout or MINUTES  # the task's is that of a policy
    return replace(arguments, driver=device, device_settings=settings, timeout=limit_s), known
