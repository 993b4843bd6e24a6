"""The seam behind which each task's twin is: what a node may ask of any of them."""

import numpy as np
import pytest
from ur_twin import free_address

from bid_ros.errors import ArmError, TaskError
from bid_ros.sim.scenes import SCENES, scene_model
from bid_ros.sim.twins import TWINS, build_twin


@pytest.fixture(params=SCENES)
def twin(request):
    made = build_twin(request.param, free_address())
    made.start()
    yield request.param, made
    made.stop()


def test_a_twin_tells_where_everything_is_and_what_a_renderer_needs(twin):
    task, made = twin
    made.reset(3, 0.0)
    made.start_path()
    bodies = made.ground_truth().bodies
    assert tuple(bodies) == made.bodies and "cup" in bodies
    for position, quaternion in bodies.values():
        assert position.shape == (3,) and np.isfinite(position).all()
        assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-6)
    state, model = made.scene_state(), scene_model(task)
    assert (state.qpos.size, state.mocap_pos.shape) == (model.nq, (model.nmocap, 3))
    assert {"real_time_factor", "overruns", "lost_s"} <= set(made.statistics())
    with pytest.raises(TaskError, match="seed"):
        made.reset(-1, 0.0)


def test_a_twin_that_does_not_run_says_so():
    made = build_twin("ur5_pick", free_address())
    with pytest.raises(ArmError, match="does not run"):
        made.scene_state()
    made.stop()


def test_a_task_without_a_twin_is_refused():
    assert set(TWINS) == set(SCENES)
    with pytest.raises(TaskError, match=r"the task 'pusht' has no twin; valid are franka_place, ur5_pick"):
        build_twin("pusht", "127.0.0.1")
