"""What a scripted demonstrator commands over the whole of its plan."""

from __future__ import annotations

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import DOWN_6D

NOW = 5_000 * NANOSECONDS  # when plans begin


def sampled(demonstrator, phases, dt=0.01):
    """Times, tool positions, widths and phases of the whole demonstration, which began at ``NOW``."""
    times = np.arange(0.0, demonstrator.duration, dt)
    actions = demonstrator.chunk_at(NOW, len(times), round(dt * NANOSECONDS)).actions
    begins = [demonstrator.begin_of(phase) for phase in phases]
    of_each = [phases[index - 1] for index in np.searchsorted(begins, times, side="right")]
    return times, actions[:, :3], actions[:, 9], of_each


def assert_the_pose_at_a_time_is_the_chunk_s(demonstrator, phases):
    times, positions, widths, of_each = sampled(demonstrator, phases, dt=0.25)
    for index, time in enumerate(times):
        position, rotation, width, phase = demonstrator.pose_at(time)
        np.testing.assert_allclose(position, positions[index], atol=1e-9)
        np.testing.assert_allclose(rotation, DOWN_6D)
        assert (width, phase) == (widths[index], of_each[index])
