"""A whole system in its twin whose episode runner or front end is frozen or killed: the arm rests, nothing is left."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from forked_bid import start_bid
from qos import EVERY_STATE
from real_time import HoldUps
from ros_bench import Bench

from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.stamps import stamp_ns
from bid_ros.recording.reader import BagReader
from bid_ros.system.processes import KILL_S, SILENT_S

START_S = 90.0  # everything starts beside whatever else this computer does
REST_S = 1.0
END_S = 20.0  # for everything to end beside whatever else this computer does
MOVES = 0.01  # m/s of the tool


class System:
    """``bid up`` in a process, and what its arm and its safety node say."""

    def __init__(self, bench: Bench, out: Path, patient: str) -> None:
        self.bench, self.out = bench, out
        self.statuses: list[ArmStatus] = []
        self.safety = SafetyState()
        bench.node.create_subscription(ArmStatus, "/arm/status", self.statuses.append, EVERY_STATE)
        bench.node.create_subscription(SafetyState, "/safety/state", self._on_safety, EVERY_STATE)
        up = f"up franka_place --episodes 100 --seed 5 --decoder vanilla --samples 1 --out {out} --parameters {patient}"
        self.front_end = start_bid(*up.split(), output=out.parent / "front_end.txt")
        self._nodes: dict[str, int] = {}

    def find_nodes(self) -> None:
        """Note the process of each node, which the front end has just started."""
        children = Path(f"/proc/{self.front_end.pid}/task/{self.front_end.pid}/children").read_text()
        self._nodes = {command_name(int(pid)).removesuffix("_node"): int(pid) for pid in children.split()}
        assert {"twin", "camera", "safety", "arm", "policy", "recorder", "episode"} <= set(self._nodes)

    def pids(self) -> dict[str, int]:
        """Process of each node that is left, by the name of the node."""
        return {name: pid for name, pid in self._nodes.items() if command_name(pid) == f"{name}_node"}

    def tracks_the_policy(self) -> bool:
        """Whether the arm moves, and because of the policy."""
        status = self.statuses[-1] if self.statuses else ArmStatus()
        return status.mode == ArmStatus.TRACKING and status.source == "policy" and speed(status) > MOVES

    def rest_s(self, since_ns: int) -> float:
        """Wait until the arm is at rest; return the s from an instant until it was."""
        resting = lambda: speed(self.statuses[-1]) == 0.0 and stamp_ns(self.statuses[-1]) > since_ns  # noqa: E731
        assert self.bench.until(resting), self.statuses[-1]
        return (stamp_ns(self.statuses[-1]) - since_ns) / NANOSECONDS

    def end(self) -> None:
        """End whatever is left."""
        self.front_end.kill()
        self.front_end.wait()
        for pid in self.pids().values():
            os.kill(pid, signal.SIGKILL)

    def _on_safety(self, message: SafetyState) -> None:
        self.safety = message


def command_name(pid: int) -> str:
    """Name of what a process runs; empty if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] == "Z" else name


@pytest.fixture
def system(bench, tmp_path, patient) -> Iterator[System]:
    system = System(bench, tmp_path / "out", patient)  # what is tested is the grant, which keeps its time
    try:
        bench.until(lambda: system.tracks_the_policy() or system.front_end.poll() is not None, START_S)
        assert system.tracks_the_policy(), (tmp_path / "front_end.txt").read_text()
        system.find_nodes()
        yield system
    finally:
        system.end()


def speed(status: ArmStatus) -> float:
    return float(np.abs(status.reference_twist).max())


def assert_ended_in_order(system: System, since_ns: int) -> None:
    """No node is left, the arm came to rest in time, and the bag is whole up to that."""
    assert system.bench.until(lambda: not system.pids(), END_S), f"orphans: {system.pids()}"
    with BagReader(system.out / "bag") as reader:
        assert reader.was_complete
        recorded = [item.message for item in reader.messages(["/arm/status"])]
        events = [item.message for item in reader.messages(["/episode/event"])]
    assert speed(recorded[-1]) == 0.0 and recorded[-1].mode == ArmStatus.STOPPED
    moved = [stamp_ns(status) for status in recorded if speed(status) > 0.0]
    assert (moved[-1] - since_ns) / NANOSECONDS <= REST_S
    assert (events[-1].kind, events[-1].outcome) == (EpisodeEvent.END, "aborted: shut down")
    assert (system.out / "run.json").exists()
    logs = {file.name: file.read_text() for file in (system.out / "logs").glob("*.log")}
    assert not [name for name, text in logs.items() if "Traceback" in text]


@pytest.mark.long
def test_a_front_end_that_is_killed_leaves_nothing_behind(system):
    since = time.time_ns()
    system.front_end.kill()
    assert_ended_in_order(system, since)


@pytest.mark.long
def test_ctrl_c_pressed_three_times_ends_everything_in_order(system):
    since = time.time_ns()
    for _ in range(3):
        system.front_end.send_signal(signal.SIGINT)
        assert system.bench.until(lambda: True, 0.1)
    assert system.bench.until(lambda: system.front_end.poll() is not None, END_S)
    assert system.front_end.returncode == 130 and not system.pids()
    assert_ended_in_order(system, since)


@pytest.mark.long
@pytest.mark.parametrize("name", ["arm", "camera", "policy", "safety", "recorder", "twin", "episode"])
def test_a_killed_node_ends_the_run_soon_and_is_named_with_its_status(system, name, record_property):
    """On the terminal, and in ``run.json`` beside the episodes so far."""
    with HoldUps() as held:
        os.kill(system.pids()[name], signal.SIGKILL)
        assert system.bench.until(lambda: system.front_end.poll() is not None, END_S)
        ended_s = held.seconds()
    record_property("ended_s", ended_s)
    assert ended_s <= 2.0
    assert system.front_end.returncode == 1 and not system.pids()
    said = f"{name} ended first (status -9, killed by SIGKILL)"
    assert f"error: {said}" in (system.out.parent / "front_end.txt").read_text()
    run = json.loads((system.out / "run.json").read_text())
    assert run["ended"] == {
        "outcome": f"aborted: {said}",
        "outcome_class": "infrastructure",
        "outcome_code": "computer",
    }
    if name != "episode":
        assert run["results"][-1]["outcome"] == f"aborted: {said}" and run["counted"] == run["episodes"] - 1


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_frozen_episode_node_stops_the_arm_and_does_not_keep_the_run_for_ever(system, record_property):
    """The grant ends at once; later the run ends by itself, says who hung, and loses nothing."""
    episode = system.pids()["episode"]
    since = time.time_ns()
    os.kill(episode, signal.SIGSTOP)
    rest = system.rest_s(since)
    record_property("rest_s", rest)
    assert rest <= REST_S
    assert system.bench.until(lambda: system.safety.state == SafetyState.STOPPED)
    assert system.bench.until(lambda: system.statuses[-1].mode == ArmStatus.STOPPED)
    for reason in (system.safety.reason, system.statuses[-1].reason):
        assert "nobody renewed the grant of 'policy' for 0.50 s" in reason
    # It stays at rest though the policy and all other nodes live on.
    count = len(system.statuses)
    assert system.bench.until(lambda: len(system.statuses) > count + 50)
    assert all(speed(status) == 0.0 for status in system.statuses[count:])
    assert system.bench.until(lambda: system.front_end.poll() is not None, SILENT_S + KILL_S + 5.0)
    assert system.front_end.returncode == 1
    assert "error: episode hung: no sign of life for 25 s" in (system.out.parent / "front_end.txt").read_text()
    assert not system.pids()
    with BagReader(system.out / "bag") as reader:
        assert reader.was_complete
    assert (system.out / "run.json").exists()
