"""Teleoperation: devices that command the arm instead of the policy, through the safety node."""
