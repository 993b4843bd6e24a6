"""Which scripted teleoperator demonstrates a task."""

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.tasks.registry import find_demonstrator
from bid_ros.tasks.twins import build_twin

TOOL = np.array([0.48, -0.05, 0.30])
PLACES = {"cup": np.array([0.50, -0.10, 0.0]), "saucer": np.array([0.48, 0.20, 0.0])}
BEGIN_NS = 5_000_000_000


@pytest.fixture(params=shipped_systems())
def task(request):
    return find_system(request.param).task


def test_a_demonstration_looks_only_at_what_the_twin_shows(task):
    assert set(find_demonstrator(task).bodies) <= set(build_twin(task, "127.0.0.1").bodies)


@pytest.mark.parametrize("style", ["clean", "diverse"])
def test_a_demonstration_begins_where_the_tool_is_and_ends_where_it_belongs(task, style):
    found = find_demonstrator(task)
    operator = found.plan(style, 3, TOOL, PLACES, BEGIN_NS)
    chunk = operator.chunk_at(BEGIN_NS, 2, 50_000_000)
    assert chunk.stamp_ns == BEGIN_NS and chunk.frame_id == task.base_frame
    np.testing.assert_allclose(chunk.actions[0, :3], TOOL, atol=1e-6)
    end, _, width, phase = operator.pose_at(operator.duration)
    np.testing.assert_allclose(end[:2], PLACES[found.bodies[-1]][:2], atol=1e-6)
    assert (phase, width) == ("hold", task.limits.gripper_max)


def test_bad_input_is_refused(task):
    with pytest.raises(BidError, match="style is 'wild'"):
        find_demonstrator(task).plan("wild", 0, TOOL, PLACES, 0)
