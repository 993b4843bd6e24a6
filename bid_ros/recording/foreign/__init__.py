"""Bags of anybody's robot: their episodes and rows, by the places that a task file names."""
