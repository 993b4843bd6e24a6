"""Recordings for the tests of curation: those of the tests of recording."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recording.conftest import kit, make_run  # noqa: F401
from recording.conftest import task as recording_task  # noqa: F401


@pytest.fixture
def task(recording_task):  # noqa: F811
    """The task of the recordings, whose tool points up."""
    return replace(recording_task, limits=replace(recording_task.limits, max_tilt=3.2))
