import threading
import time

import numpy as np
import pytest
from real_time import wait_until
from twin_layout import HOME_TOOL

from bid_ros.core.errors import ArmError, TaskError
from bid_ros.robots.franka.twin.twin import FrankaTwin
from bid_ros.tasks.placing.cup_path import episode_scene
from bid_ros.tasks.placing.geometry import OBJECT_LENGTH
from bid_ros.tasks.placing.world import SCENE

HOST = "127.0.41.1"


@pytest.fixture(scope="module")
def twin():
    made = FrankaTwin(SCENE, HOST)
    made.start()
    yield made
    made.stop()


def test_twin_keeps_real_time(twin: FrankaTwin) -> None:
    before, then = twin.statistics()["steps"], time.monotonic()
    wait_until(lambda: twin.statistics()["steps"] >= before + 500)
    elapsed = time.monotonic() - then
    statistics = twin.statistics()
    # What a busy machine takes away is counted, not hidden: steps and lost time together are the time that passed.
    assert 0.45 <= elapsed <= 0.6 + statistics["lost_s"]
    assert 0.3 < statistics["real_time_factor"] < 1.02


def test_scene_states_are_snapshots(twin: FrankaTwin) -> None:
    first = twin.scene_state()
    copy = first.qpos.copy()
    wait_until(lambda: twin.scene_state().stamp_ns > first.stamp_ns + 20_000_000)
    np.testing.assert_array_equal(first.qpos, copy)
    assert abs(twin.scene_state().stamp_ns - time.time_ns()) < 500_000_000
    assert first.mocap_pos.shape == (1, 3) and first.mocap_quat.shape == (1, 4)


def test_ground_truth_at_home(twin: FrankaTwin) -> None:
    truth = twin.ground_truth()
    np.testing.assert_allclose(truth.tool_position, HOME_TOOL, atol=1e-3)
    np.testing.assert_allclose(np.abs(truth.tool_quaternion), [1, 0, 0, 0], atol=1e-3)
    assert truth.gripper_width == pytest.approx(0.08, abs=1e-3)


def test_reset_lays_out_the_seed(twin: FrankaTwin) -> None:
    scene = twin.reset(11, speed=0.06)
    expected = episode_scene(11, 0.06)
    np.testing.assert_array_equal(scene.cup_start, expected.cup_start)
    wait_until(lambda: twin.ground_truth().bodies["object"][0][2] > 0.2)
    truth = twin.ground_truth()
    np.testing.assert_allclose(truth.bodies["cup"][0][:2], expected.cup_start)
    np.testing.assert_allclose(truth.bodies["object"][0][:2], truth.tool_position[:2], atol=1e-3)
    assert truth.tool_position[2] - truth.bodies["object"][0][2] == pytest.approx(OBJECT_LENGTH / 2 - 0.012, abs=1e-3)
    assert not truth.held


def test_cup_waits_for_the_grasp(twin: FrankaTwin) -> None:
    scene = twin.reset(12)
    twin.start_path()
    start = twin.statistics()["steps"]
    wait_until(lambda: twin.statistics()["steps"] > start + 200)
    np.testing.assert_allclose(twin.ground_truth().bodies["cup"][0][:2], scene.cup_start, atol=1e-12)


def test_impossible_speed_is_refused_and_changes_nothing(twin: FrankaTwin) -> None:
    before = twin.ground_truth().bodies["cup"][0]
    with pytest.raises(TaskError, match="cup speed is 3"):
        twin.reset(99, speed=3.0)
    np.testing.assert_array_equal(twin.ground_truth().bodies["cup"][0], before)


def test_calls_from_many_threads_are_answered(twin: FrankaTwin) -> None:
    answers: list[float] = []
    ask = lambda: answers.extend(twin.ground_truth().gripper_width for _ in range(10))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5.0)
    assert len(answers) == 40


def test_taken_address_is_one_clear_error(twin: FrankaTwin) -> None:
    second = FrankaTwin(SCENE, twin.hostname)
    with pytest.raises(ArmError, match=rf"cannot serve {HOST}"):
        second.start()
    second.stop()


def test_next_free_address_is_taken(twin: FrankaTwin) -> None:
    second = FrankaTwin(SCENE, twin.hostname, "127.0.41.2")
    second.start()
    assert second.hostname == "127.0.41.2"
    second.stop()


def test_twin_that_does_not_run_says_so() -> None:
    idle = FrankaTwin(SCENE, "127.0.41.3")
    assert idle.hostname == ""
    with pytest.raises(ArmError, match="does not run"):
        idle.ground_truth()
    idle.start()
    idle.stop()
    idle.stop()
    with pytest.raises(ArmError, match="does not run"):
        idle.reset(0)
