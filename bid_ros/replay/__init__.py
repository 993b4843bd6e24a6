"""Replay: recorded messages pass through the code that runs live, and the same decisions come out."""
