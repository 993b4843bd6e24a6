"""A chunk as a message and back: only safety may say that it slowed the motion."""

import numpy as np
import pytest

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ChunkError
from bid_ros.nodes.ros_messages import chunk_from_message, chunk_to_message


@pytest.fixture
def chunk(task):
    return ActionChunk(10**18 + 1, task.dt_ns, np.random.default_rng(0).random((20, 10)), "base", "policy", 7, 0.7)


def test_a_slowed_chunk_comes_back_as_it_was(task, chunk):
    found = chunk_from_message(chunk_to_message(chunk, task, "left"), task, slowed=True)
    np.testing.assert_array_equal(found.actions, chunk.actions)
    for name in ("stamp_ns", "dt_ns", "frame_id", "source", "sequence", "scale"):
        assert getattr(found, name) == getattr(chunk, name)


def test_of_a_sender_it_is_refused(task, chunk):
    with pytest.raises(ChunkError, match=r"from 'policy' has scale 0\.7; valid is 1: only safety slows a chunk"):
        chunk_from_message(chunk_to_message(chunk, task, ""), task)


@pytest.mark.parametrize("scale", [0.0, -0.5, 1.1, float("nan"), float("inf")])
@pytest.mark.parametrize("slowed", [True, False])
def test_a_scale_that_slows_nothing_is_refused_everywhere(task, chunk, scale, slowed):
    message = chunk_to_message(chunk, task, "")
    message.scale = scale
    with pytest.raises(ChunkError, match="has scale"):
        chunk_from_message(message, task, slowed)
