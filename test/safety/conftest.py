"""The envelope of the Franka task, and chunks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from envelope_chunks import DOWN, NOW, ROWS, TOOL, Change

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.task import Task
from bid_ros.safety.envelope import Envelope


@pytest.fixture
def envelope(task: Task) -> Envelope:
    """The envelope with its default tolerances."""
    return Envelope(task)


@pytest.fixture
def chunk(task: Task) -> Callable[..., ActionChunk]:
    """A function that builds a chunk at rest and then changes its actions."""

    def build(change: Change | None = None, **fields: Any) -> ActionChunk:
        actions = np.tile([*TOOL, *matrix_to_6d(DOWN), 0.04], (ROWS, 1))
        if change is not None:
            change(actions)
        return ActionChunk(**{"stamp_ns": NOW, "dt_ns": task.dt_ns, "actions": actions, **fields})

    return build
