"""Whatever part of the picking system is killed, frozen or cut off: the arm rests, somebody says why, a reset helps.

One system runs for all tests, and each test hands it on in motion: twin, safety and arm node as real processes with
the parameters that ``bid up ur5_pick`` gives them, a policy that is a process, and a network between arm and twin.
What only the driver sees is in ``test/robots/ur/test_network.py``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from qos import EVERY_STATE, SCENES, STATE
from robots.tcp_proxy import CONNECTION_LOST, DOWN, UP, Network, drop, duplicate, reorder
from ros_bench import Bench
from ros_domain import enter_domain
from std_srvs.srv import Trigger
from ur_twin import free_address

from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState, TwinScene
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import STATE_QOS
from bid_ros.nodes.topics import profile
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments

pytestmark = pytest.mark.long

START_S = 60.0  # everything starts beside whatever else this computer does
REST_S = 0.5
WATCH_S = 0.7  # how long the twin is watched after an event
# rad of a joint from where it ends, 1 mm of the tool. Speeds would show how unevenly a busy computer steps the twin.
RESTS = 0.002
SPEED = 0.45  # m/s of the tool
STEADY_S = 0.2
MOVES = 0.02  # rad of a joint in that time
JOINTS = 6
SCENE_HZ = 60
POLICY = Path(__file__).with_name("circling_policy.py")
RESETS = ("/arm/reset", "/safety/reset", "/arm/reset")  # as `bid reset` does
LOST = (*CONNECTION_LOST, "was closed")  # the gripper may notice first


class System:
    """The nodes, and what they and the twin say of themselves. The test plays the camera."""

    def __init__(self, bench: Bench, network: Network, twin: str) -> None:
        self.bench, self.network = bench, network
        specs = describe(find_system("ur5_pick"), RunArguments(bundle="none", record=False))
        self._parameters = {spec.name: dict(spec.parameters) for spec in specs}
        self._parameters["twin"] |= {"address": twin, "scene_rate_hz": SCENE_HZ}
        self._parameters["arm"] |= {"robot_ip": network.address, "connect_wait_s": START_S}
        self._logs: dict[str, str] = {}
        self.status = ArmStatus()
        self.safety = SafetyState()
        self.heard_ns: dict[str, int] = {}
        self._uneven_ns = time.time_ns()  # when the arm last did not follow at the speed of the policy
        self._joints: deque[tuple[int, np.ndarray]] = deque(maxlen=500)
        node = bench.node
        beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        node.create_timer(0.05, lambda: beats.publish(Heartbeat(node="camera")))
        node.create_subscription(ArmStatus, "/arm/status", self._on_status, profile(STATE_QOS, 1000))
        node.create_subscription(SafetyState, "/safety/state", self._on_safety, EVERY_STATE)
        node.create_subscription(TwinScene, "/twin/scene", self._on_scene, SCENES)
        node.create_subscription(Heartbeat, "/heartbeat", self._on_beat, EVERY_STATE)
        self._resets = {service: node.create_client(Trigger, service) for service in RESETS}
        bench.grant("policy")
        for name in ("twin", "safety", "arm", "policy"):
            self._start(name)
        # Everything that starts now may hold up the twin for longer than the arm waits.
        if not bench.until(self.moving, 20.0):
            self.go_on()

    def process(self, name: str) -> subprocess.Popen[str]:
        return self.bench.processes[name]

    def harm(self, what: Callable[[], object]) -> int:
        """Do something; return the time in ns just before."""
        event = time.time_ns()
        what()
        return event

    def moving(self) -> bool:
        """Whether the twin moves, the arm follows the policy at its speed, and everybody is heard here too."""
        since = time.time_ns() - STEADY_S * NANOSECONDS
        if any(self.heard_ns.get(name, 0) < since for name in ("policy", "safety", "arm")) or self._uneven_ns > since:
            return False
        newest = [joints for at, joints in self._joints if at > since]
        return len(newest) > 1 and float(np.ptp(newest, axis=0).max()) > MOVES

    def rest_s(self, life_ns: int, harm_ns: int | None = None) -> float:
        """Watch the twin for a while after a last sign of life; return the s after which no joint of it moved any more.

        Zero if it was at rest before.
        It must have moved when the harm was done, which is the same instant if nothing else is said.
        """
        end = life_ns + WATCH_S * NANOSECONDS
        assert self.bench.until(lambda: self._joints[-1][0] > end, START_S), "the twin shows nothing"
        final = self._joints[-1][1]
        last = max(at for at, joints in self._joints if np.abs(joints - final).max() > RESTS)
        assert last > (harm_ns or life_ns) - 0.1 * NANOSECONDS, "the twin did not move before, so this shows nothing"
        return max(0.0, (last - life_ns) / NANOSECONDS)

    def fault_s(self, event_ns: int) -> float:
        """Wait for the arm to report a fault; return the s from the event until then."""
        assert self.bench.until(lambda: self.status.mode == ArmStatus.FAULT), self.status
        return (time.time_ns() - event_ns) / NANOSECONDS

    def reasons(self) -> str:
        """What arm and safety say now."""
        return f"arm: {self.status.reason}; safety: {self.safety.reason}"

    def go_on(self) -> None:
        """Start what was killed, wake what was frozen, reset as a person would, and wait for the arm to move again."""
        for name, process in list(self.bench.processes.items()):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
            else:
                self._start(name)
        # A busy computer may hold up the network of this process, too, so that one reset is not enough.
        goes = lambda: self._reset() and self.bench.until(self.moving, 5.0)  # noqa: E731
        assert self.bench.until(goes, START_S), self.reasons()

    def tell(self) -> str:
        """Everything the processes have printed."""
        for name, process in self.bench.processes.items():
            with contextlib.suppress(BlockingIOError):
                self._logs[name] = self._logs.get(name, "") + os.read(process.stdout.fileno(), 1 << 20).decode()
        return "\n".join(self._logs.values())

    def _start(self, name: str) -> None:
        if name == "policy":
            self.bench.processes[name] = subprocess.Popen(
                [sys.executable, str(POLICY), self._parameters["arm"]["task"], str(SPEED)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "PYTHONPATH": str(POLICY.parent.parent)},
            )
        else:
            self.bench.start(name, self._parameters[name])
        os.set_blocking(self.process(name).stdout.fileno(), False)
        if name == "twin":
            # An arm that is reset, or connects, before its robot is there would wait for it.
            begun = time.time_ns()
            assert self.bench.until(lambda: self._joints and self._joints[-1][0] > begun, START_S), self.tell()

    def _reset(self) -> bool:
        return all(self._ask(service) for service in RESETS)

    def _ask(self, service: str) -> bool:
        answer = self._resets[service].call_async(Trigger.Request())
        return self.bench.until(answer.done, 5.0) and answer.result().success

    def _on_beat(self, message: Heartbeat) -> None:
        self.heard_ns[message.node] = time.time_ns()

    def _on_status(self, message: ArmStatus) -> None:
        self.status = message
        speed = float(np.linalg.norm(message.reference_twist[:3]))
        if message.mode != ArmStatus.TRACKING or abs(speed - SPEED) > 0.2 * SPEED:
            self._uneven_ns = time.time_ns()

    def _on_safety(self, message: SafetyState) -> None:
        self.safety = message

    def _on_scene(self, message: TwinScene) -> None:
        self._joints.append((stamp_ns(message), np.array(message.qpos[:JOINTS])))


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> Iterator[System]:
    with pytest.MonkeyPatch.context() as patch:
        enter_domain(patch)
        twin = free_address()
        network = Network(free_address(), twin)
        bench = Bench(tmp_path_factory.mktemp("system"))
        try:
            yield System(bench, network, twin)
        finally:
            for process in bench.processes.values():
                process.send_signal(signal.SIGCONT)
                os.set_blocking(process.stdout.fileno(), True)
            bench.close()
            network.close()


@pytest.fixture
def system(started) -> System:
    """The system in motion, whatever the test before did to it."""
    if not started.moving():
        started.network.heal()  # which cuts it
        assert started.bench.until(lambda: started.status.mode == ArmStatus.FAULT)
        started.go_on()
    return started


def check(system: System, rest_s: float, words: tuple[str, ...], note) -> None:
    """At rest in time, a reason, nobody crashed, and a reset helps."""
    note("rest_ms", round(1000 * rest_s))
    reasons = system.reasons()
    note("reasons", reasons)
    assert rest_s <= REST_S, reasons
    assert system.status.mode in (ArmStatus.STOPPED, ArmStatus.FAULT)
    assert any(word in reasons for word in words), reasons
    assert system.process("arm").poll() is None
    assert "Traceback" not in system.tell(), system.tell()
    begin = time.monotonic()
    system.go_on()
    note("recovery_s", round(time.monotonic() - begin, 1))


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("name", ["policy", "safety"])
def test_a_node_that_is_killed_or_frozen(system, record_property, name, kind):
    event = system.harm(lambda: system.process(name).send_signal(kind))
    assert system.bench.until(lambda: system.status.mode == ArmStatus.STOPPED)
    check(
        system,
        system.rest_s(system.heard_ns[name], event),
        (f"no sign of life from '{name}'", f"heartbeat of {name}"),
        record_property,
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda network: network.freeze(UP, DOWN),
        lambda network: [network.damage(way, drop) for way in (UP, DOWN)],
        lambda network: [network.delay(way, 0.5) for way in (UP, DOWN)],
        lambda network: [network.damage(way, duplicate) for way in (UP, DOWN)],
        lambda network: [network.damage(way, reorder) for way in (UP, DOWN)],
    ],
    ids=["frozen", "drops", "delays", "duplicates", "reorders"],
)
def test_a_network_that_is_damaged(system, record_property, damage):
    event = system.harm(lambda: damage(system.network))
    rest = system.rest_s(event)
    assert system.network.address in system.status.reason
    system.network.heal()
    check(system, rest, LOST, record_property)


def test_a_controller_that_is_killed(system, record_property):
    """Its arm is gone with it, so what counts is when the arm node gives up."""
    event = system.harm(system.process("twin").kill)
    check(system, system.fault_s(event), LOST, record_property)


def test_a_controller_that_is_frozen(system, record_property):
    """While it is frozen its arm stands; what counts is that it does not move on once it lives again."""
    twin = system.process("twin")
    event = system.harm(lambda: twin.send_signal(signal.SIGSTOP))
    assert system.fault_s(event) <= REST_S
    alive = system.harm(lambda: twin.send_signal(signal.SIGCONT))
    check(system, system.rest_s(alive, event), LOST, record_property)
