"""Where a recording comes from: the files of its system, software and hardware, for the metadata of its bag."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

SOFTWARE: Final = "software"
HARDWARE: Final = "hardware"
EPISODE: Final = "episode"
PACKAGES: Final = ("numpy", "opencv-python-headless", "mcap", "onnxruntime", "franky-control", "ur-rtde")


def provenance(task_file: str | Path, setup: Mapping[str, Any]) -> dict[str, str]:
    """Return the custom data of a bag: text by key.

    The files beside the task file (task, robot, cameras with their calibration, parameters of the nodes) are there by
    their names, as they are. ``software`` and ``hardware`` are JSON.

    Args:
        task_file: path of the task file, in the folder of its system.
        setup: what the run was started with, such as the robot's address and the device; part of ``hardware``.
    """
    files = sorted(Path(task_file).absolute().parent.glob("*.yaml"))
    texts = {file.name: file.read_text(errors="replace") for file in files if file.is_file()}
    return {**texts, SOFTWARE: json.dumps(software()), HARDWARE: json.dumps({**hardware(), **setup})}


def in_twin(custom: Mapping[str, str]) -> bool:
    """Return whether a bag is of a twin, from its custom data; True where they do not say."""
    try:
        setup = json.loads(custom.get(HARDWARE, "{}"))
    except ValueError:
        return True
    return not isinstance(setup, dict) or bool(setup.get("twin", True))


def software() -> dict[str, str]:
    """Return versions by name; what is not installed is left out."""
    found = {"bid_ros": installed_version("bid_ros") or "not installed", "commit": _commit()}
    ros = {"ros": os.environ.get("ROS_DISTRO", ""), "rmw": os.environ.get("RMW_IMPLEMENTATION", "")}
    packages = {name: installed_version(name) for name in PACKAGES}
    system = {"python": platform.python_version(), "os": platform.platform()}
    return {name: text for name, text in {**found, **ros, **system, **packages}.items() if text}


def installed_version(package: str) -> str:
    """Return the version of a package; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """Return the commit of the source tree, with a plus if files differ from it; empty outside of one."""
    command = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--dirty=+")
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def hardware() -> dict[str, Any]:
    """Return what computer this is."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return {"computer": platform.node(), "cpu": processor(), "cores": os.cpu_count(), "memory_gb": memory}


def processor() -> str:
    """Return the name of this computer's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
