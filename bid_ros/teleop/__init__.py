"""Teleoperation: who drives the arm instead of the policy, always through the safety node."""

from bid_ros.teleop.homing import HomingConfig, HomingPlan, homing_within
from bid_ros.teleop.picker import ScriptedPicker
from bid_ros.teleop.picking import PickingConfig, PickingGeometry
from bid_ros.teleop.placing import STYLES, PlacingConfig, PlacingGeometry
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.registry import Demonstrator, find_demonstrator
from bid_ros.teleop.scripted import ScriptedTeleoperator

__all__ = [
    "STYLES",
    "Demonstrator",
    "HomingConfig",
    "HomingPlan",
    "PickingConfig",
    "PickingGeometry",
    "PlacingConfig",
    "PlacingGeometry",
    "PlannedTeleoperator",
    "ScriptedPicker",
    "ScriptedTeleoperator",
    "find_demonstrator",
    "homing_within",
]
