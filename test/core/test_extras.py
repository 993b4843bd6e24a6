"""Programs in which the packages of an extra are really missing."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from bid_ros.core.extras import MADE, OF_RUN, install_line

# Run by Python at its start, in every process: as if the packages were not installed.
SITE = """
import os, sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in os.environ["MISSING"].split():
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
# What the locks train, bench and develop install and the lock run does not.
BEYOND_A_RUN = (
    "torch onnx onnxscript onnx_ir sympy networkx tqdm ray gym_pusht gymnasium pygame pymunk shapely pyarrow "
    "pytest mypy colcon_core imageio requests safetensors"
)
# Folders and files that only the extra `train` serves: the verbs that need them say so.
# Imported by `bid view`, `bid top` and `bid cameras --web` alone.
OF_VIEWERS = ("camera_preview", "rerun_robot", "rerun_sink", "rerun_view", "top_screen")
WITH_TRAINING = {"importing", "learning", "torch.py", "translated.py", "operators.py"}
PUSHT = ("bench", "pusht", "--episodes", "1", "--steps", "1", "--seed", "1", "--decoder", "vanilla", "--workers", "1")


@pytest.fixture
def program(tmp_path, root):
    """Run Python without some packages; returns the ended process."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    paths = [str(site), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]

    def run(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "MISSING": missing, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)

    return run


# Packages of other extras that a verb looks for before those of this one.
NAMED_FIRST = {"bench": ("tqdm",), "ray": ("tqdm", "onnx", "gym_pusht")}


@pytest.mark.parametrize(
    ("missing", "extra", "words"),
    [
        ("torch", "train", ("train", "data.npz")),
        ("torch", "train", ("policy", "export", "training")),
        ("gym_pusht", "bench", PUSHT),
        ("onnx", "bench", PUSHT),
        ("ray", "ray", (*PUSHT, "--ray", "local")),
    ],
)
def test_a_verb_without_its_extra_says_the_line_that_installs_it(program, missing, extra, words):
    for earlier in NAMED_FIRST.get(extra, ()):
        pytest.importorskip(earlier)  # else the verb names this one
    done = program(missing, "-m", "bid_ros.cli", *words)
    assert done.returncode == 2
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: ")
    assert f"(No module named '{missing}" in error
    assert error.endswith(f"; install it with: {install_line(extra)}")
    assert "Traceback" not in done.stderr


BUILD_ARM = "from bid_ros.robots.registry import build_arm as go"
BUILD_TWIN = """
from bid_ros.core.paths import share
from bid_ros.core.task import load_task
from bid_ros.tasks.twins import build_twin
build_twin(load_task(share("config", "{}", "task.yaml")), "127.0.0.1")
"""


@pytest.mark.parametrize(
    ("missing", "extra", "lines"),
    [
        (
            "openvino",
            "openvino",
            ("from bid_ros.policy.runtimes.registry import build_runtime", "build_runtime('openvino')"),
        ),
        ("mujoco", "twin", (BUILD_TWIN.format("ur5_pick"),)),
        ("franky_sim", "twin", (BUILD_TWIN.format("franka_place"),)),
        (
            "franky",
            "franka",
            (BUILD_ARM, "from bid_ros.robots.franka.config import *", "go('franka', FrankaConfig('::1'))"),
        ),
        ("rtde_control", "ur", (BUILD_ARM, "from bid_ros.robots.ur.config import *", "go('ur', UrConfig('::1'))")),
        ("pyrealsense2", "realsense", ("from bid_ros.cameras.realsense import *", "RealSenseCamera('1').open()")),
    ],
)
def test_a_part_without_its_extra_says_the_line_that_installs_it(program, missing, extra, lines):
    done = program(missing, "-c", "\n".join(lines))
    *_, error = done.stderr.splitlines()
    assert f" needs the extra '{extra}' (No module named '{missing}'); install it with: {install_line(extra)}" in error
    assert error.startswith("bid_ros.core.errors.")


def test_a_gamepad_without_evdev_says_what_compiles_it(program):
    done = program("evdev", "-c", "from bid_ros.teleop.gamepad import *; Gamepad(GamepadSettings())")
    *_, error = done.stderr.splitlines()
    assert error.startswith("bid_ros.core.errors.BidError: a gamepad needs the package evdev, which has no wheel")
    assert f"-dev, then {install_line('teleop')}" in error


def test_nothing_but_training_and_tests_needs_more_than_a_run_installs(program, root):
    modules = [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((root / "bid_ros").rglob("*.py"))
        if not WITH_TRAINING.intersection(path.parts) and path.stem not in ("__main__", "launching", *OF_VIEWERS)
    ]
    assert "bid_ros.nodes.policy_node" in modules
    assert "bid_ros.cli" in modules
    done = program(BEYOND_A_RUN, "-c", "\n".join(f"import {module}" for module in modules))
    assert done.returncode == 0, done.stderr


DECODE = """
import sys
before = set(sys.modules)
import numpy as np
from bid_ros.decoding import BidConfig, DecoderConfig, DecodeRequest, build_decoder, select
chunks = np.random.default_rng(0).normal(size=(8, 6, 2))
assert build_decoder("bid", DecoderConfig(samples=8)).choose(DecodeRequest(0, 1, 1, 6, 2), chunks, chunks).index >= 0
assert select(chunks, None, chunks[5, :-1], BidConfig(terms="backward")).index == 5
found = {name.split(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names - {"cython_runtime"}
print(*sorted(name for name in found if not name.startswith("_")))
"""
OF_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def test_decoding_needs_numpy_and_pydantic_alone(program):
    done = program(" ".join(OF_RUN), "-c", DECODE)
    assert done.returncode == 0, done.stderr
    assert {"numpy", "pydantic"} <= set(done.stdout.split()) <= {"bid_ros", "numpy", *OF_PYDANTIC}


def test_the_command_without_its_packages_says_the_line_that_installs_them(program):
    done = program(" ".join(OF_RUN), "-m", "bid_ros.cli", "--version")
    assert done.returncode == 2
    assert done.stderr == (
        f"error: bid needs the extra 'run' (No module named 'yaml'); install it with: {install_line('run')}\n"
    )


def test_a_decoder_without_its_package_says_the_line_that_installs_it(program):
    done = program("scipy", "-c", "from bid_ros.decoding import *; build_decoder('keystone')")
    assert "decoder 'keystone' needs the extra 'run' (No module named 'scipy'); install" in done.stderr


@pytest.mark.parametrize("words", [("lift",), ("demos", "lift"), ("kitchen",), ("demos", "kitchen")])
def test_a_bench_of_another_environment_names_that_and_not_an_extra_first(program, words):
    done = program("tqdm onnx robosuite gymnasium_robotics", "-m", "bid_ros.cli", "bench", *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("in an environment of its own; make it with: make benchmarks")


def test_the_line_installs_into_the_environment_that_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))  # of no checkout
    interpreter, *rest = shlex.split(install_line("train"))
    assert interpreter == sys.executable
    assert rest == ["-m", "pip", "install", "bid_ros[train]"]  # the tests run in a virtual environment


def test_the_line_makes_what_a_checkout_makes(monkeypatch, root):
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    for extra in MADE:
        *make, purpose = shlex.split(install_line(extra))
        assert make == ["make", "-C", str(root)]
        assert f"\n{purpose}: $(VENV)/" in (root / "Makefile").read_text()
    assert install_line("umi").endswith("-m pip install 'bid_ros[umi]'")


def test_a_purpose_of_the_makefile_brings_what_its_extra_names(root):
    """The packages of setup.py, but those of the extra ``run``."""
    extras = dict(re.findall(r'"([\w-]+)": \[(.*?)\],\n', (root / "setup.py").read_text(), flags=re.DOTALL))
    for extra, purpose in MADE.items():
        named = set(re.findall(r'"([\w-]+)[^"\[]*"', extras[extra])) - {"bid_ros"}
        listed = {re.split("[<>=]", line)[0] for line in (root / f"requirements/{purpose}.in").read_text().split()}
        assert named and named <= listed, extra


def test_a_module_of_our_own_that_is_missing_is_not_an_extra(program):
    done = program(
        "", "-c", "from bid_ros.core.extras import extra\nwith extra('train', 'this'):\n    import bid_ros.absent"
    )
    assert "ModuleNotFoundError: No module named 'bid_ros.absent'" in done.stderr
