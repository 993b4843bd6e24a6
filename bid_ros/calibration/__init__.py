"""Calibration of cameras: lens, pose at the wrist, pose in the base frame, and whether a camera has moved since."""
