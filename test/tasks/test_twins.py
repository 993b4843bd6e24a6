"""The seam behind which each task's twin is: what a node may ask of any of them."""

from dataclasses import replace

import numpy as np
import pytest
from ur_twin import free_address

from bid_ros.core.errors import ArmError, TaskError
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.tasks.twins import build_twin, scene_model


@pytest.fixture(params=shipped_systems())
def twin(request):
    task = find_system(request.param).task
    made = build_twin(task, free_address())
    made.start()
    yield task, made
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
    made = build_twin(find_system("ur5_pick").task, free_address())
    with pytest.raises(ArmError, match="does not run"):
        made.scene_state()
    made.stop()


@pytest.mark.parametrize("robot", ["franka", "ur"])
def test_a_task_without_objects_has_an_empty_table_and_its_own_cameras(robot):
    system = find_system({"franka": "franka_place", "ur": "ur5_pick"}[robot])
    task = replace(system.task, kind="table")
    made, model = build_twin(task, free_address()), scene_model(task)
    assert [model.camera(index).name for index in range(model.ncam)] == ["third_person", "wrist"]
    made.start()
    try:
        made.reset(0, 0.0)
        made.start_path()
        assert made.ground_truth().bodies == {} and made.scene_state().qpos.size == model.nq
        with pytest.raises(TaskError, match=r"target speed is 0\.03 m/s; valid is 0, as nothing moves"):
            made.reset(0, 0.03)
    finally:
        made.stop()
