"""Offscreen OpenGL that really does not work: in a process of its own whose libraries or drivers cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
OF_OPENGL = ("EGL", "OpenGL", "GL", "GLESv2", "GLESv1_CM", "OSMesa")
NO_DRIVER = {"MUJOCO_GL": "egl", "__EGL_VENDOR_LIBRARY_FILENAMES": os.devnull}
RENDER = """
import os
from bid_ros.core.errors import CameraError
from bid_ros.sim import opengl_variables
os.environ.update(opengl_variables())
import mujoco
from bid_ros.sim.renderer import SceneRenderer
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><camera name='eye'/></worldbody></mujoco>")
try:
    SceneRenderer(model, 16, 16).close()
except CameraError as error:
    print(f"refused: {error}")
else:
    print("rendered", os.environ["MUJOCO_GL"])
"""


def render(*before: str, **variables: str) -> str:
    """Render a frame after these words of a command line and with these environment variables; return what was said."""
    env = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "BID_OPENGL")}
    command = [*before, sys.executable, "-c", RENDER]
    done = subprocess.run(command, env={**env, **variables}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return done.stdout.strip()


def test_the_first_backend_that_works_is_taken():
    assert render() in ("rendered egl", "rendered osmesa")


@pytest.mark.parametrize("then", ["", "raise OSError('a library is missing')"], ids=["loads", "fails"])
def test_triton_is_imported_before_a_driver(tmp_path, then):
    """After Mesa's LLVM was loaded, its import ends the process."""
    seen = "import pathlib, sys; pathlib.Path(__file__).with_name('seen').write_text(str('mujoco.egl' in sys.modules))"
    (tmp_path / "triton.py").write_text(f"{seen}\n{then}\n")
    assert render(PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}", MUJOCO_GL="egl") == "rendered egl"
    assert (tmp_path / "seen").read_text() == "False"


@pytest.mark.parametrize("variable", ["MUJOCO_GL", "BID_OPENGL"])
def test_an_unknown_backend_is_refused_after_mujoco_was_imported(variable):
    assert render(**{variable: "directx"}) == "refused: MUJOCO_GL is 'directx'; valid are egl, osmesa"


def test_a_missing_driver_is_said_with_what_the_backend_says():
    said = render(**NO_DRIVER)
    assert said.startswith("refused: no offscreen rendering: egl says 'Cannot initialize a EGL device display.")
    assert said.endswith("install it with: apt-get install libgl1-mesa-dri, or unset MUJOCO_GL")


def test_a_library_that_does_not_load_is_named(tmp_path):
    for name in OF_OPENGL:
        for ending in ("", *(f".{number}" for number in range(10))):
            (tmp_path / f"lib{name}.so{ending}").write_text("no library\n")
    said = render(LD_LIBRARY_PATH=str(tmp_path))
    assert said.startswith("refused: no offscreen rendering: libEGL.so.1 does not load (")
    assert "libOpenGL.so.0 does not load (" in said
    assert "; install them with: apt-get install libegl1 libopengl0" in said


@pytest.mark.parametrize(
    ("hidden", "asked", "sentence"),
    [
        ("libOpenGL.* libGL.* libGLES*", "", "libOpenGL.so.0 is missing; install it with: apt-get install libopengl0"),
        (
            "libEGL.*",
            "egl",
            "libEGL.so.1 is missing; install it with: apt-get install libegl1, or unset MUJOCO_GL",
        ),
        (
            "libOSMesa.*",
            "osmesa",
            "libOSMesa.so.8 is missing; install it with: apt-get install libosmesa6, or unset MUJOCO_GL",
        ),
    ],
)
def test_a_missing_library_is_named_with_its_package(tmp_path, hidden, asked, sentence):
    layers = f"lowerdir={LIBRARIES},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    (tmp_path / "upper").mkdir()
    (tmp_path / "work").mkdir()
    hide = f'cd {LIBRARIES} && rm -f {hidden} libOSMesa.* && cd / && exec "$@"'
    command = ("unshare", "--mount", "bash", "-c", f"mount -t overlay o -o {layers} {LIBRARIES} && {hide}", "bash")
    if subprocess.run([*command, "true"], cwd="/", capture_output=True).returncode:
        pytest.skip("this user may not hide libraries from a process (unshare, overlay)")
    assert render(*command, MUJOCO_GL=asked) == f"refused: no offscreen rendering: {sentence}"
