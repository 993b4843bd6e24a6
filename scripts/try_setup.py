"""Judge a set-up by trying: import every package that a run needs and every module of ours, and render one frame.

Usage: try_setup.py. One sentence for each thing that lacks, with the command that mends it. Exit status: 0 a run works,
though something optional may lack; 1 it does not.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from bid_ros.core.task import load_task
from bid_ros.sim import opengl_variables
from bid_ros.system.check.hardware import twin_findings
from bid_ros.teleop.gamepad import NO_EVDEV

os.environ.update(opengl_variables())  # before the first import of MuJoCo
ROOT = Path(__file__).resolve().parents[1]
TASK = ROOT / "config/franka_place/task.yaml"
# Debian packages of libraries that Python packages of a run load.
PACKAGES = {"libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6", "libusb-1.0.so.0": "libusb-1.0-0"}


def required() -> list[str]:
    """Return the modules that requirements/run.in names packages of, without ROS's, which our nodes import."""
    text = "".join((ROOT / f"requirements/{name}.in").read_text() for name in ("ros", "run"))
    names = {re.split("[<>=]", line)[0] for line in text.splitlines() if line and line[0] not in "#-"}
    names -= {"evdev", "setuptools"}  # the first is optional; the second is there for builds only
    found = packages_distributions()
    return sorted(
        module
        for module, packages in found.items()
        if module.isidentifier() and not module.startswith("_") and names.intersection(packages)
    )


def ours() -> Iterator[str]:
    """Yield the name of every module of bid_ros."""
    for file in sorted((ROOT / "bid_ros").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        if not name.endswith("__main__"):
            yield name.removesuffix(".__init__")


def problem(module: str) -> str:
    """Return why a module does not import, empty if it does, or if it needs a package that no run has."""
    try:
        importlib.import_module(module)
    except Exception as error:  # an extension module raises what it likes
        cause = error.__cause__ or error  # of the sentence that names a missing extra
        absent = (cause.name or "") if isinstance(cause, ModuleNotFoundError) else "bid_ros"
        if module.startswith("bid_ros.") and not absent.startswith("bid_ros"):
            return ""
        missing = re.match(r"(\S+\.so\S*): cannot open shared object", str(error))
        package = PACKAGES.get(missing.group(1)) if missing else None
        advice = f"; install it with: apt-get install {package}" if package else ""
        return f"{module} does not import: {error}{advice}"
    return ""


def main() -> int:
    """Try everything; return the exit status."""
    problems = [text for module in (*required(), *ours()) if (text := problem(module))]
    task = load_task(TASK)
    findings = twin_findings(task, [camera.name for camera in task.cameras])
    problems += [f"{item.measured}; {item.advice}" for item in findings if item.state != "ok"]
    for text in problems:
        print(f"error: {text}", file=sys.stderr)
    if problem("evdev"):
        print(f"without a gamepad: {NO_EVDEV}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
