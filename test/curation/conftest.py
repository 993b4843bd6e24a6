"""Recordings for the tests of curation: those of the tests of recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recording.conftest import kit, make_run  # noqa: F401
from recording.conftest import task as recording_task  # noqa: F401

from bid_ros.curation.catalog import episodes_of
from bid_ros.recording.reader import BagReader


@pytest.fixture
def task(recording_task):  # noqa: F811
    """The task of the recordings, whose tool points up."""
    return replace(recording_task, limits=replace(recording_task.limits, max_tilt=3.2))


def indices(bag: Path) -> list[int]:
    """Return the numbers of the episodes in a bag."""
    with BagReader(bag) as reader:
        return [item.episode.index for item in episodes_of(reader)]


def files(bag: Path) -> dict[str, bytes]:
    """Return what the files of a bag hold."""
    return {path.name: path.read_bytes() for path in bag.iterdir()}
