"""A UR in lockstep, for the tests of this folder that name no other robot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from robots.ur.lockstep import World, lockstep


@pytest.fixture
def robot(request: pytest.FixtureRequest) -> Iterator[World]:
    """A robot of the test module's clock; an e-series without a parameter."""
    with lockstep(getattr(request, "param", "e-series"), request.module) as world:
        yield world
