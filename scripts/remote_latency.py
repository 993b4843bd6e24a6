"""Measure what decisions with a policy elsewhere take, over links that are slow and lose packets.

It observes what the twin's cameras see from places along a line, with the noise of a camera: its images are compressed.

The policy's server runs in a network namespace of its own. The links to it are those of lossy_network.py: the kernel's
own TCP, over a network that holds each packet back and loses some. So it needs root on Linux.

Usage: remote_latency.py [BUNDLE [SECONDS [SAMPLES [CONGESTION]]]]
  CONGESTION   names of Linux's congestion controls with commas; default: bbr, which both ends ask for, and cubic, which
               most computers use where they may not have it
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from lossy_network import Network
from remote_server import pointer, served

from bid_ros.commands.serve import PRIORITY
from bid_ros.commands.tasks import task_of
from bid_ros.core.errors import RemoteError
from bid_ros.core.observation import Observation
from bid_ros.core.schedule import AbsoluteSchedule
from bid_ros.core.task import Task
from bid_ros.policy.agreement import random_observations
from bid_ros.policy.base import Bundle
from bid_ros.policy.budget import DelayMeter
from bid_ros.policy.bundle import bundled_task, load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote import dial
from bid_ros.system.folder import find_system
from bid_ros.system.priority import raise_priority

LATE_NS = 40_000_000  # of a decision; then it is skipped, as the policy node does
TURN_S = 5.0
SEEN, LINE = 50, ((0.4, -0.1, 0.3), (0.5, 0.1, 0.15))  # places, and ends of their line in m
NOISE = 3.0  # grey levels, standard deviation
LINKS = ((5.0, 0.0), (5.0, 0.01))  # delay each way in ms, share of packets that are lost


def observed(bundle: Bundle, task: Task) -> list[Observation]:
    """Return observations with images of the twin, and random vectors."""
    random, rng, found = random_observations(bundle, task, SEEN), np.random.default_rng(0), list[Observation]()
    stage = find_system(task.name).stage()
    stage.begin(0, np.array(LINE[0]), 0.0)
    for each, place in zip(random, np.linspace(*LINE, SEEN), strict=True):
        stage.step(place, np.array([1.0, 0.0, 0.0, 0.0]), None)
        images = {name: image + rng.normal(0.0, NOISE, image.shape) for name, image in stage.images().items()}
        grey = {
            name: np.repeat(np.clip(image, 0, 255).astype(np.uint8)[None], task.observation_steps, axis=0)
            for name, image in images.items()
        }
        found.append(Observation(each.stamp_ns, {**each.values, **grey}))
    stage.close()
    return overlapping(found)


def overlapping(seen: list[Observation]) -> list[Observation]:
    """Return observations that begin with the rows that the one before ended with, as those of a run do."""
    found = seen[:1]
    for each in seen[1:]:
        before = found[-1].values
        rows = {name: np.concatenate([before[name][1:], value[-1:]]) for name, value in each.values.items()}
        found.append(Observation(each.stamp_ns, rows))
    return found


class Decided:
    """A policy that decides on the task's schedule, for a few seconds at a time.

    Args:
        name: of its row in the table.
        bundle: its folder.
        task: its task.
        samples: N.
    """

    def __init__(self, name: str, bundle: Path, task: Task, samples: int) -> None:
        found = load_bundle(bundle, task)
        policy = load_policy(found, task)
        self._name, self._task, self._seen = name, task, observed(found, task)
        self._policy, self._sizes_kb = policy, list[float]()
        self._maker = DecisionMaker(policy, bundle_decoder("bid+delay", found, task, samples, 1), task)
        self._times_ms: list[float] = []
        self._told: list[int] = []
        self._missed = self._failed = 0
        self._seconds = 0.0
        policy.warm_up(samples)

    def decide(self, seconds: float) -> None:
        """Decide as the policy node does. The delay is measured anew."""
        self._maker.reset()
        self._maker.delay = None
        meter = DelayMeter(self._task.dt_ns)
        schedule = AbsoluteSchedule(self._task.dt_ns, time.monotonic_ns(), LATE_NS)
        for _ in range(round(seconds * 1e9 / self._task.dt_ns)):
            if self._turn(schedule, meter):
                self._told.append(meter.steps)
        self._missed += schedule.skipped
        self._seconds += seconds + schedule.skipped * self._task.dt_ns / 1e9

    def _turn(self, schedule: AbsoluteSchedule, meter: DelayMeter) -> bool:
        """Wait for the next decision and make it; return whether there was one."""
        tick = None
        while tick is None:
            time.sleep(max(0.0, (schedule.due_ns - time.monotonic_ns()) / 1e9))
            tick = schedule.take(time.monotonic_ns())
        seen = Observation(tick.due_ns, self._seen[tick.index % len(self._seen)].values)
        begin = time.monotonic_ns()
        try:
            self._maker.decide(seen)
        except RemoteError:
            self._failed += 1
            return False
        took = time.monotonic_ns() - begin
        meter.took(took)
        self._sizes_kb.append(getattr(self._policy, "vitals", {}).get("question_kb", 0.0))
        self._maker.delay = meter.steps
        self._times_ms.append(took / 1e6)
        return True

    def row(self) -> str:
        """Return a row of the table."""
        times = self._times_ms
        p50, p99 = np.percentile(times, [50, 99])
        gone = f"{self._missed + self._failed} ({self._failed} given up)"
        shares = np.bincount(self._told) / len(self._told)
        told = ", ".join(f"{number}: {100 * share:.0f} %" for number, share in enumerate(shares) if share)
        rate = f"{len(times) / self._seconds:.2f}"
        size = f"{np.median(self._sizes_kb):.1f}"
        return f"| {self._name} | {size} | {rate} | {p50:.1f} | {p99:.1f} | {max(times):.1f} | {gone} | {told} |"


def main(
    bundle: str = "models/franka_place", seconds: str = "60", samples: str = "16", congestion: str = "bbr,cubic"
) -> None:
    """Print what decisions take here and over the links. They take turns: load hits all alike."""
    task, count, controls = task_of("", bundled_task(bundle), bundle), int(samples), congestion.split(",")
    named = [(delay_ms, loss, control) for control in controls for delay_ms, loss in LINKS]
    with ExitStack() as stack:
        network = stack.enter_context(Network(named))
        serve = lambda control: served(Path(bundle), count, network.within, "0.0.0.0", control)  # noqa: E731
        ports = {control: stack.enter_context(serve(control)) for control in controls}
        raise_priority(PRIORITY, every_thread=True)  # as the policy node
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        all_of = [Decided("in this process", Path(bundle), task, count)]
        for number, (delay_ms, loss, control) in enumerate(named):
            dial.WANTED = control
            name = f"{control}, {delay_ms:g} ms each way, {100 * loss:g} % loss"
            where = pointer(folder / str(number), task, ports[control], network.server(number))
            all_of.append(Decided(name, where, task, count))
        for _ in range(round(float(seconds) / TURN_S)):
            for each in all_of:
                each.decide(TURN_S)
        print("| policy | kB a question | decisions a second | p50 ms | p99 ms | max ms | missed | delay told, steps |")
        print("|---|---|---|---|---|---|---|---|")
        for each in all_of:
            print(each.row(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
