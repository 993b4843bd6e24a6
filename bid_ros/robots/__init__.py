"""Robots. Each folder has the driver, the twin and the descriptor of one robot."""
