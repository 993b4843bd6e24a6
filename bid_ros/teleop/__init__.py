"""Teleoperation: who drives the arm instead of the policy, always through the safety node."""

from bid_ros.teleop.homing import HomingConfig, HomingPlan, homing_within
from bid_ros.teleop.picker import ScriptedPicker
from bid_ros.teleop.picking import PickingConfig, PickingGeometry
from bid_ros.teleop.placing import PlacingConfig, PlacingGeometry
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.registry import DEMONSTRATORS, STYLES, Demonstrator, check_styles, find_demonstrator
from bid_ros.teleop.scripted import ScriptedTeleoperator

__all__ = [
    "DEMONSTRATORS",
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
    "check_styles",
    "find_demonstrator",
    "homing_within",
]
