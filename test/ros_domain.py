"""A ROS domain that no other test uses."""

from __future__ import annotations

import os

import pytest

from bid_ros.system.middleware import middleware_environment


def enter_domain(patch: pytest.MonkeyPatch) -> int:
    """Move this process, and those that it starts, into a domain of its own on this host only; return its number."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    domain = 20 + (os.getpid() + 7 * worker) % 80
    patch.setenv("ROS_DOMAIN_ID", str(domain))
    for name, value in middleware_environment(twin=True).items():
        patch.setenv(name, value)
    return domain
