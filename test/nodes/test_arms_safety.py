"""The safety nodes of two arms as real processes: what stops one stops both, and a reset begins with the cause."""

import pytest
from qos import EVERY_STATE, STATE
from std_srvs.srv import Trigger

from bid_msgs.msg import ArmStatus, Grant, Heartbeat, SafetyState
from bid_ros.episodes.causes import ARM_ENDS
from bid_ros.nodes.ros_messages import duration_message

ARMS = ("left", "right")


class Pair:
    """Plays the other nodes of both arms."""

    def __init__(self, bench, root):
        self.bench, self.alive = bench, {arm: {"camera", "policy", "arm"} for arm in ARMS}
        self.status = {arm: ArmStatus(robot=arm) for arm in ARMS}
        self.states = {arm: SafetyState(state=SafetyState.WAITING) for arm in ARMS}
        self._beaten, node = 1000, bench.node
        self._topics = {
            arm: [
                node.create_publisher(kind, f"/{arm}/{name}", STATE)
                for kind, name in ((Heartbeat, "heartbeat"), (Grant, "grant"), (ArmStatus, "arm/status"))
            ]
            for arm in ARMS
        }
        self._resets = {arm: node.create_client(Trigger, f"/{arm}/safety/reset") for arm in ARMS}
        task = str(root / "config" / "franka_place" / "task.yaml")
        # The longest deadline that is valid: a busy computer stalls a node for a second.
        given = {"task": task, "twin": True, "settle_s": 0.1, "heartbeat_deadline_s": 2.0}
        for arm, other in (ARMS, ARMS[::-1]):
            node.create_subscription(SafetyState, f"/{arm}/safety/state", self._heard(arm), EVERY_STATE)
            bench.start("safety", given, "-r", f"__ns:=/{arm}", "-p", f"partners:=['/{other}']")
            bench.processes[arm] = bench.processes.pop("safety")
        node.create_timer(0.03, self._beat)

    def _heard(self, arm):
        return lambda message: self.states.__setitem__(arm, message)

    def _beat(self):
        self._beaten += 1
        for arm, (beats, grants, statuses) in self._topics.items():
            for name in self.alive[arm]:
                beats.publish(Heartbeat(node=name, robot=arm, sequence=self._beaten))
            grants.publish(
                Grant(robot=arm, granter="bench", sources=["policy"], duration=duration_message(500_000_000))
            )
            statuses.publish(self.status[arm])

    def both(self, state):
        return lambda: all(message.state == state for message in self.states.values())

    def reset(self, arm):
        future = self._resets[arm].call_async(Trigger.Request())
        assert self.bench.until(future.done)
        return future.result()


@pytest.fixture
def pair(bench, root):
    made = Pair(bench, root)
    running = bench.until(made.both(SafetyState.RUNNING), 60.0)
    assert running, {arm: (bench.processes[arm].poll(), made.states[arm].reason) for arm in ARMS}
    return made


def test_a_dead_arm_node_stops_both_arms_and_the_one_that_lives_waits_for_its_reset(pair):
    pair.alive["left"].discard("arm")
    assert pair.bench.until(pair.both(SafetyState.STOPPED))
    left, right = pair.states["left"], pair.states["right"]
    assert left.rule == "heartbeat:arm" and right.rule == "partner" and "the arm 'left' stopped: " in right.reason
    assert not pair.reset("right").success, "the cause lasts"
    pair.alive["left"].add("arm")
    assert pair.bench.until(lambda: pair.reset("left").success)
    assert pair.bench.until(lambda: pair.reset("right").success)
    assert pair.bench.until(pair.both(SafetyState.RUNNING))


def test_an_arm_node_that_stopped_by_itself_stops_both(pair):
    pair.status["right"].mode, pair.status["right"].reason = ArmStatus.STOPPED, "the gripper does not answer"
    assert pair.bench.until(pair.both(SafetyState.STOPPED))
    assert pair.states["right"].rule == "fault" and pair.states["left"].rule == "partner"
    assert "the gripper does not answer" in pair.states["left"].reason


def test_a_safety_node_that_dies_stops_the_other_arm(pair):
    pair.bench.processes.pop("right").kill()
    assert pair.bench.until(lambda: pair.states["left"].state == SafetyState.STOPPED)
    assert pair.states["left"].rule == "heartbeat:right/safety"


def test_the_end_of_a_run_is_no_stop(pair):
    """Arms at rest end in order, before their safety nodes: neither blames the other one, nor its own arm node."""
    stops: list[SafetyState] = []
    for arm in ARMS:
        keep = lambda state: stops.append(state) if state.state == SafetyState.STOPPED else None  # noqa: E731
        pair.bench.node.create_subscription(SafetyState, f"/{arm}/safety/state", keep, EVERY_STATE)
        pair.bench.processes[arm].terminate()
    ended = lambda: all(pair.bench.processes[arm].poll() is not None for arm in ARMS)  # noqa: E731
    pair.bench.until(ended, 0.1)
    for arm in ARMS:
        pair.status[arm].mode, pair.status[arm].reason = ArmStatus.STOPPED, ARM_ENDS
        pair.alive[arm].clear()
    assert pair.bench.until(ended) and not stops, stops
