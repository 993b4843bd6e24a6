"""Extras of the package: packages that only a part of it needs, and the line that installs a missing one."""

import shlex
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError

OF_RUN: Final = (
    *("argcomplete", "scipy", "yaml", "onnxruntime", "cv2", "PIL", "imageio_ffmpeg", "matplotlib", "rosbags", "mcap"),
    "zstandard",
)
"""Modules of the extra ``run``, which the command ``bid`` and the nodes import anywhere."""
MADE: Final = {"train": "train", "bench": "bench", "data": "data", "view": "view", "ray": "bench"}
"""Which purpose of the Makefile brings the packages of an extra."""


@contextmanager
def extra(name: str, what: str, error: type[BidError] = BidError) -> Iterator[None]:
    """Around an import of packages that an extra installs: one that does not import becomes one sentence.

    Args:
        name: of the extra in ``setup.py``.
        what: needs it; the subject of the sentence.
        error: class of the error.

    Raises:
        BidError: a package does not import; the sentence ends with the line that installs it.
    """
    try:
        yield
    except ImportError as problem:
        if (problem.name or "").split(".")[0] == "bid_ros":
            raise
        raise error(f"{what} needs the extra '{name}' ({problem}); install it with: {install_line(name)}") from problem


def check_extra(name: str, what: str, *packages: str) -> None:
    """Say that a package is missing before long work begins. Nothing is imported.

    Args:
        name, what: see :func:`extra`.
        packages: that the work will import.

    Raises:
        BidError: one of them is not installed; as :func:`extra` says it.
    """
    for package in packages:
        with extra(name, what):
            if find_spec(package) is None:
                raise ModuleNotFoundError(f"No module named '{package}'", name=package)


def install_line(name: str) -> str:
    """Return the shell line that installs an extra into the environment that runs this program.

    That is ``make`` in the environment that a checkout made: it takes the versions of the project's lock.
    """
    checkout, purpose = Path(__file__).resolve().parents[2], MADE.get(name)
    if purpose and (checkout / "Makefile").exists() and (checkout / ".venv").resolve() == Path(sys.prefix).resolve():
        return shlex.join(["make", "-C", str(checkout), purpose])
    words = [sys.executable, "-m", "pip", "install"]
    if sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists():
        words.append("--break-system-packages")  # a Debian or Ubuntu Python, such as ROS's own; without it pip refuses
    return shlex.join([*words, f"bid_ros[{name}]"])
