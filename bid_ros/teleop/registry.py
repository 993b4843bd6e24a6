"""Teleoperation devices by name."""

from typing import Final

from bid_ros.core.registry import Registry, collect
from bid_ros.teleop.base import DeviceDescriptor

DEVICES: Final[Registry[DeviceDescriptor]] = Registry(
    "teleoperation device", "bid_ros.teleop", lambda: collect(__package__, "DEVICE")
)
