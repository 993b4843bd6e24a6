"""Robotiq 2F-85 gripper: driver, model and twin."""
