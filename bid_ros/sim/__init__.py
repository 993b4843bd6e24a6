"""Shared by all simulated scenes: pieces of MJCF, rendering, state."""

from typing import Final

NO_OPENGL: Final = "disable"  # MuJoCo's word for no OpenGL yet: the cameras of a twin look for one that works
