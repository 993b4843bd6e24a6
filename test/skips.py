"""Where everything is there (CI=true), a test that is left out is an error, but for the reasons listed here."""

from __future__ import annotations

import os
import re

import pytest

# What no computer has both ways: a user who is and who is not root, a GPU and none.
ALLOWED = (
    r"root may do everything",
    r"only root may .*",
    r"this user may raise a priority",
    r"this user may not raise a priority",
    r"this user may not hide libraries from a process .*",
    r"there may be a GPU",
    r"there is a GPU",
    r"it is built with CUDA",
    r"the plugin is installed",
    r"this machine has a real-time kernel",
    r"this session has no niceness of its own",
    r"ROS's launch is not installed",
    r"its controller takes no joints",
    r"pyrealsense2 is not installed",
    r"gymnasium-robotics is not installed",
    r"robosuite is not installed",
)


def forbidden(reason: str) -> bool:
    """Whether CI does not let a test be left out for this reason."""
    return os.environ.get("CI") == "true" and not any(re.fullmatch(allowed, reason) for allowed in ALLOWED)


def reason_of(longrepr: object) -> str:
    """Return why a test was left out, as it stands in pytest's report."""
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(text).removeprefix("Skipped: ")


def fail_if_forbidden(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a report of a test, or of a file of them, that must not be left out into a failure."""
    if report.skipped and not hasattr(report, "wasxfail") and forbidden(reason := reason_of(report.longrepr)):
        report.outcome = "failed"
        report.longrepr = f"left out where CI=true: {reason}; valid reasons are in test/skips.py"
