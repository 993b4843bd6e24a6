"""Which scripted teleoperator demonstrates a task."""

import numpy as np
import pytest

from bid_ros.errors import BidError, TaskError
from bid_ros.sim.scenes import SCENES
from bid_ros.sim.twins import build_twin
from bid_ros.task import load_task
from bid_ros.teleop import find_demonstrator

TOOL = np.array([0.48, -0.05, 0.30])
PLACES = {"cup": np.array([0.50, -0.10, 0.0]), "saucer": np.array([0.48, 0.20, 0.0])}
BEGIN_NS = 5_000_000_000


@pytest.fixture(params=SCENES)
def name(request):
    return request.param


def test_a_demonstration_looks_only_at_what_the_twin_shows(name):
    assert set(find_demonstrator(name).bodies) <= set(build_twin(name, "127.0.0.1").bodies)


@pytest.mark.parametrize("style", ["clean", "diverse"])
def test_a_demonstration_begins_where_the_tool_is_and_ends_where_it_belongs(root, name, style):
    found, task = find_demonstrator(name), load_task(root / "config" / f"{name}.yaml")
    operator = found.plan(style, 3, TOOL, PLACES, BEGIN_NS)
    chunk = operator.chunk_at(BEGIN_NS, 2, 50_000_000)
    assert chunk.stamp_ns == BEGIN_NS and chunk.frame_id == task.base_frame
    np.testing.assert_allclose(chunk.actions[0, :3], TOOL, atol=1e-6)
    end, _, width, phase = operator.pose_at(operator.duration)
    np.testing.assert_allclose(end[:2], PLACES[found.bodies[-1]][:2], atol=1e-6)
    assert (phase, width) == ("hold", task.limits.gripper_max)


def test_bad_input_is_refused(name):
    with pytest.raises(BidError, match="style is 'wild'"):
        find_demonstrator(name).plan("wild", 0, TOOL, PLACES, 0)
    with pytest.raises(TaskError, match=r"'pusht' has no scripted teleoperator; valid are franka_place, ur5_pick"):
        find_demonstrator("pusht")
