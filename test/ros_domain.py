"""A ROS domain that no other test uses."""

from __future__ import annotations

import os
import socket
from functools import cache

import pytest

from bid_ros.system.middleware import middleware_environment

FIRST, COUNT = 20, 80


@cache
def own_domain() -> int:
    """Return the domain of this process. It holds it to its end, so lanes and other users that test have others."""
    for step in range(COUNT):
        domain = FIRST + (os.getpid() + step) % COUNT
        # An abstract address, which Linux frees when this process and what it forked have ended.
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0bid_ros test domain {domain}")
        except OSError:
            claim.close()
            continue
        _CLAIMS.append(claim)
        return domain
    raise AssertionError(f"the domains {FIRST} to {FIRST + COUNT - 1} are taken by other tests")


_CLAIMS: list[socket.socket] = []


def enter_domain(patch: pytest.MonkeyPatch) -> int:
    """Move this process, and those that it starts, into a domain of its own on this host only; return its number."""
    patch.setenv("ROS_DOMAIN_ID", str(own_domain()))
    for name, value in middleware_environment().items():
        patch.setenv(name, value)
    return own_domain()
