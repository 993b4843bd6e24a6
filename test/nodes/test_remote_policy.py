"""A policy elsewhere drives the twin: twin, safety, arm and policy node as real processes, and a network between the
policy node and its server that the test cuts. Whatever the server does wrong, the arm comes to rest, and goes on only
after a reset.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving
from qos import COMMAND, EVERY_STATE, IMAGE, STATE
from robots.tcp_proxy import DOWN, UP, Network
from ros_bench import Bench
from ros_domain import enter_domain
from sensor_msgs.msg import Image
from std_srvs.srv import Trigger
from tiny_bundle import make_tiny_bundle

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState
from bid_ros.cameras.image import encode_image
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import STATE_QOS
from bid_ros.nodes.ros_messages import time_message
from bid_ros.nodes.topics import profile
from bid_ros.policy.base import Capabilities
from bid_ros.policy.bundle import load_bundle
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments

SYSTEM = "franka_place"
START_S = 60.0
SPEED, RADIUS = 0.12, 0.06  # of the tool, m/s and m
# A deadline twice the usual one: a decision that a busy computer makes late is no silence.
TIMEOUT_MS, DEADLINE_S = 200.0, 0.6
# A decision begins up to a period after the cut and waits for its time-out. From then on the heartbeat is missing.
# After its deadline the arm brakes.
BRAKES_S = 0.15
REST_S = 0.1 + TIMEOUT_MS / 1000 + DEADLINE_S + BRAKES_S
SLACK_S = 0.15  # of a busy computer
MORE = {
    "policy": {"budget_ms": 0.0, "max_late_ms": 90.0},
    "arm": {"heartbeat_deadline_s": DEADLINE_S},
    "safety": {"heartbeat_deadline_s": DEADLINE_S},
}
RESETS = ("/arm/reset", "/safety/reset", "/arm/reset")
MOVES, RESTS = 0.5 * SPEED, 0.002  # m/s of the set-point


class Circling:
    """A policy whose tool goes round a circle for ever, from wherever it is. It may be told to fail."""

    runtime, has_weak, capabilities = "circling", False, Capabilities(starts=False)

    def __init__(self, task) -> None:
        self._task = task
        self.spoil: Callable[[np.ndarray], np.ndarray] = lambda chunks: chunks
        self.asked = 0
        self._centre: np.ndarray | None = None

    def encode(self, observation, weak=True):
        return {item.name: observation.values[item.name][-1] for item in self._task.vectors}

    def sample(self, encoded, strong, weak, rng, start=None, start_mode="noise"):
        self.asked += 1
        here = encoded["tool_position"]
        if self._centre is None:
            self._centre = here[:2] - (RADIUS, 0.0)
        away = here[:2] - self._centre
        phases = math.atan2(away[1], away[0]) + SPEED / RADIUS * self._task.dt_ns / NANOSECONDS * (
            np.arange(self._task.horizon) - self._task.observation_steps + 1
        )
        rows = np.concatenate([encoded[item.name] for item in self._task.action])
        rows = np.tile(rows, (strong, self._task.horizon, 1))
        rows[..., 0] = self._centre[0] + RADIUS * np.cos(phases)
        rows[..., 1] = self._centre[1] + RADIUS * np.sin(phases)
        return self.spoil(rows), None

    def warm_up(self, samples):
        """There is nothing to compile."""


class System:
    """The nodes, the server in this process, the network between them, and what arm and safety say."""

    def __init__(self, bench: Bench, policy: Circling, network: Network, bundle) -> None:
        self.bench, self.policy, self.network = bench, policy, network
        self.status, self.safety = ArmStatus(), SafetyState()
        self.speeds: deque[tuple[int, float]] = deque(maxlen=2000)
        self.chunks: deque[tuple[int, ChunkMessage]] = deque(maxlen=2000)
        node = bench.node
        beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        node.create_timer(0.05, lambda: beats.publish(Heartbeat(node="camera")))
        self._shade = 0
        self._images = [
            node.create_publisher(Image, f"/camera/{item}/image", IMAGE) for item in ("third_person", "wrist")
        ]
        node.create_timer(0.1, self._publish_images)
        node.create_subscription(ArmStatus, "/arm/status", self._on_status, profile(STATE_QOS, 1000))
        node.create_subscription(
            SafetyState, "/safety/state", lambda message: setattr(self, "safety", message), EVERY_STATE
        )
        node.create_subscription(
            ChunkMessage, "/policy/chunk", lambda message: self.chunks.append((time.time_ns(), message)), COMMAND
        )
        self._resets = {service: node.create_client(Trigger, service) for service in RESETS}
        specs = describe(find_system(SYSTEM), RunArguments(bundle=str(bundle.path), record=False, decoder="vanilla"))
        bench.grant("policy")
        for spec in specs:
            if spec.name in ("twin", "safety", "arm", "policy"):
                bench.start(spec.name, {**spec.parameters, **MORE.get(spec.name, {})})
        if not bench.until(self.moving, 20.0):
            self.go_on()

    def moving(self) -> bool:
        """Whether the set-point has moved at the speed of the policy for a while."""
        since = time.time_ns() - NANOSECONDS // 5
        newest = [speed for at, speed in self.speeds if at > since]
        return len(newest) > 3 and min(newest) > MOVES

    def rest_s(self, event_ns: int) -> float:
        """Wait for the arm to stop and rest; return the s from the event until its set-point rested."""
        assert self.bench.until(lambda: self.status.mode == ArmStatus.STOPPED and self.speeds[-1][1] < RESTS), self
        return (max(at for at, speed in self.speeds if speed >= RESTS) - event_ns) / NANOSECONDS

    def go_on(self) -> None:
        """Reset as a person would, and wait for the arm to move."""
        goes = lambda: all(map(self._ask, RESETS)) and self.bench.until(self.moving, 5.0)  # noqa: E731
        assert self.bench.until(goes, START_S), f"{self.status.reason}; {self.safety.reason}"

    def _ask(self, service: str) -> bool:
        if not self._resets[service].service_is_ready():
            return False
        answer = self._resets[service].call_async(Trigger.Request())
        return self.bench.until(answer.done, 5.0) and answer.result().success

    def _publish_images(self) -> None:
        stamp = time_message(time.time_ns())
        self._shade += 1  # each image differs from the one before: the policy node refuses a frozen camera
        for publisher in self._images:
            message = Image(**encode_image(np.full((96, 96, 3), self._shade % 2, np.uint8)))
            message.header.stamp = stamp
            publisher.publish(message)

    def _on_status(self, message: ArmStatus) -> None:
        self.status = message
        self.speeds.append((stamp_ns(message), float(np.linalg.norm(message.reference_twist[:3]))))


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("remote")
    task = find_system(SYSTEM).task
    with pytest.MonkeyPatch.context() as patch:
        enter_domain(patch)
        policy = Circling(task)
        served = load_bundle(make_tiny_bundle(folder / "tiny", task, weak=False), task)
        with serving(policy, served, task) as server:
            network = Network("127.0.0.2", "127.0.0.1", [server.port])
            bundle = remote_bundle(folder / "bundle", task, f"ws://127.0.0.2:{server.port}", timeout_ms=TIMEOUT_MS)
            bench = Bench(folder)
            try:
                yield System(bench, policy, network, bundle)
            finally:
                bench.close()
                network.close()


@pytest.fixture
def driven(system) -> System:
    """The system in motion, whatever the test before did to it."""
    system.policy.spoil = lambda chunks: chunks
    if not system.moving():
        system.network.heal()
        system.go_on()
    return system


def check(system: System, rest_s: float, event_ns: int, note: Callable[[str, object], None]) -> None:
    """At rest in time because of the policy's silence, nothing published since, and a reset helps."""
    note("rest_ms", round(1000 * rest_s))
    reasons = f"arm: {system.status.reason}; safety: {system.safety.reason}"
    note("reasons", reasons)
    assert rest_s <= REST_S + SLACK_S, reasons
    assert "'policy'" in reasons or "heartbeat of policy" in reasons, reasons
    assert system.bench.processes["policy"].poll() is None
    # A decision that was made before may still have been on its way.
    late = [at for at, _ in system.chunks if at > event_ns + 0.15 * NANOSECONDS]
    assert not late, "a chunk was published without an answer"
    system.policy.spoil = lambda chunks: chunks
    system.network.heal()
    system.go_on()


def test_a_server_beyond_a_network_decides_ten_times_a_second(driven):
    """In some second and a half: a busy computer holds up decisions now and then, a defect all of them."""
    driven.chunks.clear()

    def period_s() -> float:
        stamps = [stamp_ns(message) for _, message in list(driven.chunks)[-15:]]
        return float(np.median(np.diff(stamps))) / NANOSECONDS if len(stamps) == 15 else math.inf

    assert driven.bench.until(lambda: abs(period_s() - 0.1) < 0.02, 40.0), f"{period_s():.3f} s"


def test_a_network_that_is_cut_stops_the_arm(driven, record_property):
    event = time.time_ns()
    driven.network.freeze(UP, DOWN)
    check(driven, driven.rest_s(event), event, record_property)


# Every other answer is an error in the policy node too (test_a_bad_answer_is_one_sentence_and_no_decision).
@pytest.mark.parametrize(
    "spoil",
    [lambda chunks: chunks * np.nan, lambda chunks: time.sleep(2 * TIMEOUT_MS / 1000) or chunks],
    ids=["nan", "always too late"],
)
def test_a_server_that_answers_something_else_stops_the_arm(driven, record_property, spoil):
    event = time.time_ns()
    driven.policy.spoil = spoil
    check(driven, driven.rest_s(event), event, record_property)


def test_a_connection_that_is_lost_for_a_moment_costs_a_decision_at_most_a_few(driven):
    driven.network.cut()
    driven.chunks.clear()
    assert driven.bench.until(lambda: len(driven.chunks) >= 5)
    assert driven.bench.until(lambda: driven.status.mode == ArmStatus.TRACKING and driven.moving())
