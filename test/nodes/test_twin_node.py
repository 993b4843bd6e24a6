"""The twin node as a real process, for every task: it serves a robot and tells where everything is."""

from __future__ import annotations

import ast
from functools import partial

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from qos import EVENT, EVERY_STATE, SCENES
from ur_twin import free_address

from bid_msgs.msg import EpisodeEvent, TwinScene
from bid_msgs.srv import ResetEpisode
from bid_ros.core.stamps import stamp_ns
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.tasks.twins import build_twin, scene_model

LIMIT_S = 40.0
NAMES = ("cup", "object", "saucer")


class Harness:
    """Listens to a twin node and asks it for resets."""

    def __init__(self, bench, root, task: str):
        self.bench, self.task = bench, task
        self.scenes: list[TwinScene] = []
        self.poses: dict[str, list[PoseStamped]] = {name: [] for name in NAMES}
        self.diagnosis: dict[str, str] = {}
        node = bench.node
        node.create_subscription(TwinScene, "/twin/scene", self.scenes.append, SCENES)
        for name in NAMES:
            node.create_subscription(PoseStamped, f"/ground_truth/{name}_pose", self.poses[name].append, EVERY_STATE)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVERY_STATE)
        self.events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        self._reset = node.create_client(ResetEpisode, "/twin/reset")
        self.address = free_address()
        bench.start("twin", {"task": str(root / "config" / task / "task.yaml"), "address": self.address})
        assert bench.until(lambda: self.scenes and self._reset.service_is_ready(), LIMIT_S)

    def _on_diagnostics(self, message):
        self.diagnosis = {item.key: item.value for item in message.status[0].values}

    def reset(self, seed: int, speed: float = 0.0):
        future = self._reset.call_async(ResetEpisode.Request(seed=seed, target_speed=speed))
        assert self.bench.until(future.done, LIMIT_S)
        return future.result()

    def place_of(self, name: str) -> tuple[float, float]:
        """Where the body is now."""
        before = len(self.poses[name])
        assert self.bench.until(lambda: len(self.poses[name]) > before + 1, LIMIT_S)
        point = self.poses[name][-1].pose.position
        return point.x, point.y


@pytest.fixture(params=shipped_systems())
def harness(bench, root, request):
    return Harness(bench, root, request.param)


def test_the_twin_of_a_task_shows_its_scene_and_nothing_else(harness):
    task = find_system(harness.task).task
    bodies = build_twin(task, free_address()).bodies
    assert harness.bench.until(lambda: all(len(harness.poses[name]) > 3 for name in bodies), LIMIT_S)
    assert {name for name in NAMES if harness.poses[name]} == set(bodies)
    scene, model = harness.scenes[-1], scene_model(task)
    assert (len(scene.qpos), len(scene.mocap_pos)) == (model.nq, 3 * model.nmocap)
    # The poses of one scene carry one stamp, so that whoever scores does not mix two instants.
    assert len(set.intersection(*({stamp_ns(item) for item in harness.poses[name]} for name in bodies))) > 2
    assert harness.bench.until(lambda: "real_time_factor" in harness.diagnosis, LIMIT_S)
    assert ast.literal_eval(harness.diagnosis["real_time_factor"]) > 0.1


def test_a_reset_lays_out_the_seed_and_the_start_lets_the_cup_go(harness):
    assert harness.reset(3).success
    first = harness.place_of("cup")
    assert harness.reset(4, 0.05).success
    second = harness.place_of("cup")
    assert abs(first[0] - second[0]) + abs(first[1] - second[1]) > 0.01
    refused = harness.reset(4, 5.0)
    assert not refused.success and "valid is" in refused.message
    if harness.task == "ur5_pick":  # the placing twin waits for the fingers to close
        harness.events.publish(EpisodeEvent(kind=EpisodeEvent.START))
        moved = partial(_far, second, harness)
        assert harness.bench.until(moved, LIMIT_S)


def _far(place, harness) -> bool:
    now = harness.place_of("cup")
    return abs(now[0] - place[0]) + abs(now[1] - place[1]) > 0.02


@pytest.mark.parametrize("name", shipped_systems())
def test_a_second_twin_at_the_same_address_ends_with_one_sentence(bench, root, name):
    parameters = {"task": str(root / "config" / name / "task.yaml"), "address": free_address()}
    bench.start("twin", parameters)
    bench.processes["first"] = bench.processes.pop("twin")
    assert bench.until(lambda: bench.node.count_publishers("/twin/scene") > 0, LIMIT_S)
    second = bench.start("twin", parameters)
    assert bench.until(lambda: second.poll() is not None, LIMIT_S)
    status, output = bench.finish("twin")
    assert status == 2 and output.count("error: ") == 1 and "Traceback" not in output
