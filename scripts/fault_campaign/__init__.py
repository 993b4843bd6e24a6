"""Injects faults into a running system and measures, by the twin's ground truth, what the arm does."""
