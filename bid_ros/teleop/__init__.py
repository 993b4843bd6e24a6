"""Teleoperation: who drives the arm instead of the policy, always through the safety node."""

from bid_ros.teleop.homing import HomingConfig, HomingPlan, homing_within
from bid_ros.teleop.placing import PlacingConfig, PlacingGeometry
from bid_ros.teleop.scripted import ScriptedTeleoperator

__all__ = ["HomingConfig", "HomingPlan", "PlacingConfig", "PlacingGeometry", "ScriptedTeleoperator", "homing_within"]
