"""The episode node of two arms as a real process: all or none, with both arms and their twins played by the test."""

import json
import time

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from qos import EVENT, EVERY_COMMAND, EVERY_STATE, STATE
from std_srvs.srv import Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Decision, EpisodeEvent, Grant, Heartbeat, SafetyState
from bid_msgs.srv import ResetEpisode
from bid_ros.nodes.ros_messages import pose_message, pose_stamped

START_S = 60.0
SAUCER = [0.50, 0.20, 0.0]
AWAY, PLACED = [0.50, -0.10, 0.0], [0.50, 0.20, 0.008]


class Arm:
    """Plays the nodes of one arm, and its twin of picking."""

    def __init__(self, node, name):
        self.name, self.position, self.width, self.cup = name, [0.5, 0.0, 0.3], 0.02, AWAY
        self.kinds, self.seeds, self.resets, self.decided = [], [], [], 0
        self.grants: list[tuple[str, ...]] = []
        self.safety, self.mode = SafetyState(robot=name, state=SafetyState.RUNNING), ArmStatus.HOLDING
        offered = {"heartbeat": Heartbeat, "arm/status": ArmStatus, "safety/state": SafetyState}
        offered |= {"policy/decision": Decision, "ground_truth/cup_pose": PoseStamped}
        offered |= {"ground_truth/saucer_pose": PoseStamped}
        self._ends = {topic: node.create_publisher(kind, f"/{name}/{topic}", STATE) for topic, kind in offered.items()}
        node.create_subscription(ChunkMessage, f"/{name}/episode/chunk", self._follow, EVERY_COMMAND)
        node.create_subscription(EpisodeEvent, f"/{name}/episode/event", self._on_event, EVENT)
        node.create_subscription(
            Grant, f"/{name}/grant", lambda item: self.grants.append(tuple(item.sources)), EVERY_STATE
        )
        node.create_service(ResetEpisode, f"/{name}/twin/reset", self._on_twin)
        for service in ("arm/reset", "safety/reset"):
            node.create_service(Trigger, f"/{name}/{service}", self._on_reset)
        node.create_timer(0.05, self._publish)
        node.create_timer(0.1, self._show)

    def _on_event(self, event):
        assert event.robot == self.name
        self.kinds.append(event.kind)
        self.seeds.append(event.seed)

    def _follow(self, message):
        rows = np.array(message.actions).reshape(message.steps, message.dims)
        self.position, self.width = rows[-1, :3], float(rows[-1, -1])

    def _on_twin(self, request, response):
        self.cup = AWAY
        response.success = True
        return response

    def _on_reset(self, _, response):
        self.resets.append(self.safety.rule)
        self.safety, self.mode = SafetyState(robot=self.name, state=SafetyState.RUNNING), ArmStatus.HOLDING
        response.success = True
        return response

    def _publish(self):
        tool = pose_message(self.position, [1.0, 0.0, 0.0, 0.0])
        status = ArmStatus(robot=self.name, mode=self.mode, gripper_width=self.width, tool=tool)
        self._ends["arm/status"].publish(status)
        self._ends["safety/state"].publish(self.safety)
        self._ends["heartbeat"].publish(Heartbeat(robot=self.name, node="policy"))
        if self.runs():
            self.decided += 1
            made = Decision(robot=self.name, sequence=self.decided, decision_time=0.02, missed=self.decided // 2)
            self._ends["policy/decision"].publish(made)

    def _show(self):
        stamp = time.time_ns()
        for name, place in (("cup", self.cup), ("saucer", SAUCER)):
            self._ends[f"ground_truth/{name}_pose"].publish(pose_stamped(stamp, "base", place, [0.0, 0.0, 0.0, 1.0]))

    def runs(self):
        return self.kinds[-1:] == [EpisodeEvent.START]

    def stop(self, rule, reason):
        self.safety = SafetyState(robot=self.name, state=SafetyState.STOPPED, rule=rule, reason=reason)


class Pair:
    """Both arms, and the episode node under test."""

    def __init__(self, bench, root, tmp_path, episodes):
        self.bench, self.out = bench, tmp_path / "out"
        self.arms = {name: Arm(bench.node, name) for name in ("left", "right")}
        content, file = yaml.safe_load((root / "config" / "ur5_pick" / "task.yaml").read_text()), tmp_path / "task.yaml"
        file.write_text(yaml.safe_dump({**content, "episode_timeout": 4.0}))
        shared = {"name": "two", "arms": list(self.arms), "tasks": [str(file)] * 2, "arm_configs": ["", ""]}
        run = {"episodes": episodes, "out": str(self.out), "labels": ["bid"], "seed": 5, "moving": 0.0}
        heard = [f"{name}/policy" for name in self.arms]
        bench.start("arms_episode", {**shared, **run, "twin": True, "nodes": heard})

    def until_started(self):
        assert self.bench.until(lambda: all(arm.runs() and arm.decided > 3 for arm in self.arms.values()), START_S)

    def finish(self):
        assert self.bench.until(lambda: self.bench.processes["arms_episode"].poll() is not None, START_S)
        status, output = self.bench.finish("arms_episode")
        assert "Traceback" not in output, output
        return status, json.loads((self.out / "run.json").read_text()), output


@pytest.fixture
def pair(bench, root, tmp_path):
    return lambda episodes: Pair(bench, root, tmp_path, episodes)


def test_a_stop_of_one_arm_ends_the_episode_of_both_and_a_success_is_one_of_both(pair):
    pair = pair(2)
    left, right = pair.arms.values()
    pair.until_started()
    assert left.grants[-1] == right.grants[-1] == ("policy",)
    right.stop("partner", "the arm 'left' stopped: no sign of life")  # it may be heard first
    left.stop("heartbeat:arm", "no sign of life from 'arm'")
    assert pair.bench.until(lambda: left.kinds[-1] == right.kinds[-1] == EpisodeEvent.END, START_S)
    assert left.grants[-1] == right.grants[-1] == ()
    for arm in pair.arms.values():
        arm.decided = 0
    pair.until_started()
    left.cup = PLACED
    before = len(left.grants)
    assert pair.bench.until(lambda: len(left.grants) > before + 10)
    assert left.runs() and left.grants[-1] == ("policy",), "the arm that is done waits for the other"
    right.cup = PLACED
    status, run, output = pair.finish()
    outcomes = [item["outcome"] for item in run["results"]]
    assert outcomes == ["stopped: no sign of life from 'arm' (left)", "success"] and status == 0, output
    assert set(left.resets) == {"heartbeat:arm", ""} and set(right.resets) == {"partner", ""}
    assert run["stops"][0]["reset_by"] == "run" and len(run["stops"]) == 1
    assert run["decisions"] > 6 and run["missed"] > 2
    assert left.seeds[0] != right.seeds[0], "each arm has a scene of its own"


def test_one_arm_that_is_not_done_in_time_fails_the_episode(pair):
    pair = pair(1)
    left, right = pair.arms.values()
    pair.until_started()
    left.cup = PLACED
    status, run, _ = pair.finish()
    assert (status, run["successes"]) == (0, 0)
    assert run["results"][0]["outcome"] == "right: timeout"
    assert left.kinds[-1] == right.kinds[-1] == EpisodeEvent.END
