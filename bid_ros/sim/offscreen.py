"""Offscreen OpenGL of this computer: open it, or say which library is missing. Set-up, checks and nodes ask here."""

import contextlib
import ctypes
import importlib
import importlib.util
import os
import subprocess
import sys
from typing import Any, Final

from bid_ros.core.errors import CameraError
from bid_ros.sim import ASKED, opengl_variables

BACKENDS: Final = ("egl", "osmesa")
# What a backend loads: names of a library, of which one is enough, and the Debian packages that bring it.
_LIBRARIES: Final = {
    "egl": (
        (("libEGL.so.1",), "libegl1"),
        (("libOpenGL.so.0", "libGL.so.1", "libGLESv2.so.2"), "libopengl0"),
        (("libEGL_mesa.so.0", "libEGL_nvidia.so.0"), "libegl-mesa0 libgl1-mesa-dri"),
    ),
    "osmesa": ((("libOSMesa.so.8", "libOSMesa.so.6"), "libosmesa6"),),
}
_PROBE_S: Final = 30.0


class RenderingError(CameraError):
    """No offscreen OpenGL works here. The message is ``problem``, then ``advice``.

    Args:
        problem: what is wrong.
        advice: what to do about it.
    """

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem, self.advice = problem, advice


def open_context(width: int, height: int) -> Any:
    """Open an offscreen OpenGL context of ``width`` x ``height`` px, and make it this thread's.

    ``MUJOCO_GL`` (egl or osmesa) forces a backend; without it the first one that works is taken.

    Raises:
        RenderingError: none works, or not the one that was asked for; the message names the missing libraries.
        CameraError: ``MUJOCO_GL`` is not valid.
    """
    backend = opengl_variables()[ASKED] or _first_working_backend()
    if backend not in BACKENDS:
        raise CameraError(f"MUJOCO_GL is '{backend}'; valid are {', '.join(BACKENDS)}")
    _import_triton()
    try:
        context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
        context.make_current()
    except Exception as error:  # the bindings raise anything from ImportError to AttributeError when a library lacks
        raise _no_rendering(backend, str(error)) from error
    os.environ["MUJOCO_GL"] = backend
    return context


def _import_triton() -> None:
    """Import Triton, which PyTorch for CUDA brings, before a driver of OpenGL is loaded.

    PyTorch imports it later, to optimise or to compile. After Mesa has loaded its LLVM that ends the process (Triton
    3.7.1, Mesa 22.3: segmentation fault). The other order works.
    """
    if importlib.util.find_spec("triton") is not None:
        with contextlib.suppress(Exception):  # a Triton that does not load is not loaded later, either
            importlib.import_module("triton")


def _first_working_backend() -> str:
    # Try it in another process, because PyOpenGL binds one platform for the life of a process.
    said = []
    for backend in BACKENDS:
        code = f"from mujoco.{backend} import GLContext; GLContext(8, 8).make_current()"
        try:
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=_PROBE_S, check=False)
        except subprocess.TimeoutExpired:
            said.append(f"no answer within {_PROBE_S:g} s")
            continue
        if done.returncode == 0:
            return backend
        said.append((done.stderr.decode(errors="replace").strip() or "nothing").splitlines()[-1])
    raise _no_rendering(BACKENDS[0], said[0])


def _no_rendering(backend: str, said: str) -> RenderingError:
    """Return the error of a backend that does not work: what lacks, or where every library loads what it ``said``."""
    lacking = [(problem, package) for names, package in _LIBRARIES[backend] if (problem := _problem(names))]
    instead = ", or unset MUJOCO_GL" if opengl_variables()[ASKED] else ""
    if not lacking:
        advice = f"its driver may be missing; install it with: apt-get install libgl1-mesa-dri{instead}"
        return RenderingError(f"no offscreen rendering: {backend} says '{said}'", advice)
    problems, packages = zip(*lacking, strict=True)
    what = "it" if len(lacking) == 1 else "them"
    advice = f"install {what} with: apt-get install {' '.join(packages)}{instead}"
    return RenderingError(f"no offscreen rendering: {', '.join(problems)}", advice)


def _problem(names: tuple[str, ...]) -> str:
    """Return why none of these libraries loads, by the first of them; empty if one does."""
    problems = []
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            absent = str(error).startswith(f"{name}: cannot open")
            problems.append(f"{name} is missing" if absent else f"{name} does not load ({error})")
        else:
            return ""
    return problems[0]
