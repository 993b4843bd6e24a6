"""Policies that LeRobot saved, read without LeRobot."""
