"""Shared by all simulated scenes: pieces of MJCF, rendering, state."""
