"""Shared by all simulated scenes: pieces of MJCF, rendering, state."""

import os
from typing import Final

NO_OPENGL: Final = "disable"  # MuJoCo's word for no OpenGL yet: the cameras of a twin look for one that works
ASKED: Final = "BID_OPENGL"  # environment variable: what MUJOCO_GL asked for


def opengl_variables() -> dict[str, str]:
    """Return environment variables with which an import of MuJoCo opens no OpenGL, and so cannot fail for one.

    What ``MUJOCO_GL`` asks for waits in another variable for who renders.
    """
    asked = os.environ.get("MUJOCO_GL", "").strip().lower()
    asked = os.environ.get(ASKED, "") if asked in ("", NO_OPENGL) else asked
    return {"MUJOCO_GL": NO_OPENGL, ASKED: asked}
