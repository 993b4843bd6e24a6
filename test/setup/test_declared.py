"""What the package imports is declared: for rosdep in package.xml, for pip in setup.py, for `make` in a lock."""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import pytest

from bid_ros.core.extras import OF_RUN

ROOT = Path(__file__).resolve().parents[2]
# Imported module: key of rosdep ("" = there is none), name on PyPI.
PYTHON = {
    "PIL": ("python3-pil", "pillow"),
    "argcomplete": ("python3-argcomplete", "argcomplete"),
    "av": ("", "av"),
    "cv2": ("python3-opencv", "opencv-python-headless"),
    "dashboard_client": ("", "ur-rtde"),
    "evdev": ("python3-evdev", "evdev"),
    "franky": ("", "franky-control"),
    "franky_sim": ("", "franky-sim"),
    "gym_pusht": ("", "gym-pusht"),
    "gymnasium": ("", "gymnasium"),
    "gymnasium_robotics": ("", "gymnasium-robotics"),
    "h5py": ("", "h5py"),
    "imageio_ffmpeg": ("", "imageio-ffmpeg"),
    "matplotlib": ("python3-matplotlib", "matplotlib"),
    "mcap": ("", "mcap"),
    "msgpack": ("python3-msgpack", "msgpack"),
    "mujoco": ("python3-mujoco-pip", "mujoco"),
    "numcodecs": ("", "numcodecs"),
    "numpy": ("python3-numpy", "numpy"),
    "onnx": ("", "onnx"),
    "onnxruntime": ("python3-onnxruntime-pip", "onnxruntime"),
    "openvino": ("", "openvino"),
    "pinocchio": ("pinocchio", "pin"),
    "pyarrow": ("", "pyarrow"),
    "pydantic": ("", "pydantic"),
    "pyrealsense2": ("", "pyrealsense2"),
    "pyspacemouse": ("", "pyspacemouse"),
    "ray": ("", "ray"),
    "rerun": ("", "rerun-sdk"),
    "rerun_cli": ("", "rerun-sdk"),
    "rich": ("", "textual"),
    "robosuite": ("", "robosuite"),
    "rosbags": ("python3-rosbags-pip", "rosbags"),
    "rtde_control": ("", "ur-rtde"),
    "rtde_receive": ("", "ur-rtde"),
    "ruckig": ("", "ruckig"),
    "safetensors": ("", "safetensors"),
    "scipy": ("python3-scipy", "scipy"),
    "tensorrt_libs": ("", "tensorrt-cu13"),
    "textual": ("", "textual"),
    "torch": ("", "torch"),
    "tqdm": ("", "tqdm"),
    "triton": ("", "torch"),  # PyTorch for CUDA brings it
    "websockets": ("python3-websockets", "websockets"),
    "yaml": ("python3-yaml", "pyyaml"),
    "zarr": ("", "zarr"),
    "zstandard": ("", "zstandard"),
}
# What a robot computer does without, so neither rosdep nor ros.lock brings it.
OPTIONAL = {
    "av",
    "gym-pusht",
    "gymnasium",
    "gymnasium-robotics",
    "h5py",
    "numcodecs",
    "onnx",
    "pyarrow",
    "pyrealsense2",
    "robosuite",
    "pyspacemouse",
    "ray",
    "rerun-sdk",
    "safetensors",
    "tensorrt-cu13",
    "textual",
    "torch",
    "tqdm",
    "zarr",
}
NOT_IMPORTED = {"libusb-1.0", "ros2launch", "python3-pytest", "python3-pytest-timeout"}
NOT_IMPORTED |= {"control_msgs", "controller_manager_msgs", "trajectory_msgs"}  # found by name: nodes/ros_bus.py


def imported(source: str) -> set[str]:
    """Top-level names of what a file imports, by statement or by a constant name given to importlib."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func) and node.args:
            names.update(part.value for part in node.args if isinstance(part, ast.Constant))
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"bid_ros", "__future__"}


@cache
def imports() -> dict[str, set[str]]:
    """What each file of the package imports; not to be changed."""
    return {str(path.relative_to(ROOT)): imported(path.read_text()) for path in sources()}


def undeclared(names: set[str]) -> set[str]:
    """Return those that neither package.xml nor, for packages of PyPI, setup.py and the inputs of the locks declare."""
    pip, wanted = set(re.findall(r'"([\w-]+)(?:[<>=][^"]*)?"', setup_lists())), inputs("run", "ros")
    found = set()
    for name in names:
        if name not in PYTHON:
            found |= {name} - dependencies()
            continue
        key, package = PYTHON[name]
        for_ros = package in OPTIONAL or (key in dependencies() if key else package in inputs("ros"))
        if not (for_ros and package in pip and (package in OPTIONAL or package in wanted)):
            found.add(name)
    return found


def sources() -> list[Path]:
    return [*(ROOT / "bid_ros").rglob("*.py"), *(ROOT / "launch").glob("*.py")]


@cache
def dependencies() -> set[str]:
    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    return {item.text or "" for item in manifest if item.tag.endswith("depend")}


@cache
def setup_lists() -> str:
    (call,) = (
        node.value
        for node in ast.parse((ROOT / "setup.py").read_text()).body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )
    return " ".join(
        ast.unparse(item) for item in call.keywords if item.arg in ("install_requires", "extras_require")
    ).replace("'", '"')


@cache
def inputs(*purposes: str) -> set[str]:
    text = "\n".join((ROOT / "requirements" / f"{purpose}.in").read_text() for purpose in purposes)
    return {re.split("[<>=]", line)[0] for line in text.splitlines() if line and line[0] not in "#-"}


def test_every_import_is_declared():
    found = {path: undeclared(names) for path, names in imports().items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_everything_declared_is_imported():
    names = set().union(*imports().values())
    keys = {PYTHON[name][0] if name in PYTHON else name for name in names}
    assert dependencies() - NOT_IMPORTED <= keys
    assert set(PYTHON) <= names


def test_an_installation_without_extras_is_for_decoding_alone():
    """Who only decodes gets two packages; extras bring the command, and what it says is missing is of ``run``.

    Those with the onnxruntime of GPUs do not: beside it the one of the command would be the same module again.
    """
    (required,) = re.findall(r"install_requires=\[(.*?)\]", setup_lists())
    assert required == '"numpy", "pydantic>=2"'
    extras = dict(re.findall(r'"([\w-]+)": \[(.*?"[\w-]+[^]"]*")\]', setup_lists()))
    run = extras.pop("run")
    assert len(extras) > 15 and '"onnxruntime"' in run
    for brought in extras.values():
        assert brought.startswith('"bid_ros[run]", ') == ('"onnxruntime-gpu' not in brought)
    assert {PYTHON[module][1] for module in OF_RUN} == set(re.findall(r'"([\w-]+)"', run))


def test_an_import_that_is_not_declared_fails():
    assert undeclared(imported("import tf2_ros\nfrom requests import get\nimport numpy")) == {"tf2_ros", "requests"}
    assert undeclared(imported("import importlib\nimportlib.import_module('pandas.io')")) == {"pandas"}


@pytest.mark.parametrize("lock", ["run", "train", "bench", "data", "view", "develop", "ros"])
def test_a_lock_has_everything_that_its_input_names(lock):
    names = inputs(lock) | (inputs("ros") if lock == "run" else set())
    assert {normal(name) for name in names} <= set(locked(lock))


def test_the_locks_share_one_version_of_each_package():
    versions: dict[str, set[str]] = {}
    for lock in ("run", "train", "bench", "data", "view", "develop"):
        for name, version in locked(lock).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_a_run_installs_nothing_of_training_the_bench_and_development():
    beyond = {
        "torch",
        "onnx",
        "onnxscript",
        "sympy",
        "ray",
        "gym-pusht",
        "pygame",
        "pyarrow",
        "av",
        "h5py",
        "zarr",
        "rerun-sdk",
        "textual",
        "pytest",
        "colcon-core",
        "ruff",
    }
    assert not beyond & set(locked("run"))
    assert not beyond & set(locked("ros"))


def test_a_ros_installation_keeps_its_own_packages():
    """NumPy above all: the installation's messages are compiled for its version."""
    own = {line.split("==")[0] for line in (ROOT / "requirements/noble.txt").read_text().splitlines() if "==" in line}
    assert "numpy" in own
    assert not {name for name in locked("ros") if name in own or name.startswith(("ros-", "colcon"))}


def locked(lock: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / f"{lock}.lock").read_text().splitlines()
    pairs = (line.split(" ;")[0].split("==") for line in lines if not line.startswith("#"))
    return {normal(name): version for name, version in pairs}


def normal(name: str) -> str:
    return re.sub(r"[._-]+", "-", name).lower()
