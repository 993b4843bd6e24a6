"""What judging chunks costs: all rules on 16 candidates, all rules and the arm's own parts on one chunk, and the hop.

Candidates: motions of the tool from a posture over the table, 5 mm a row in random directions, which keep every limit,
so no rule is left out. The hop is the time between the recorder's receptions of a chunk on policy/chunk and of the same
chunk on safety/chunk; with --bag.

Usage: safety-cost [SYSTEM ...] [--bag BAG]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.tables import markdown_table
from bid_ros.core.task import Task
from bid_ros.core.topics import POLICY_CHUNK, SAFETY_CHUNK
from bid_ros.recording.reader import BagReader
from bid_ros.robots.registry import posed_arm
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.screen import Screen
from bid_ros.system.folder import find_system

CANDIDATES: Final = 16
STEP_M: Final = 0.005
NOW_NS: Final = 1_000_000_000_000
ROUNDS: Final = 300
# Postures, rad, with the tool pointing down over the table.
HOME: Final = {
    "franka": (0.0, -0.28278114, 0.0, -2.40004545, 0.0, 2.11726431, np.pi / 4),
    "ur": (3.0, -1.7, 2.0, -1.87, -1.57, 0.0),
}
FOLLOWS_NS: Final = 90_000_000  # a chunk of policy/chunk is on safety/chunk before the next one comes


def judged(name: str) -> tuple[Task, ArmModel]:
    """Return the task of a system with a wide workspace, and its arm. Raises BidError if nobody knows the arm."""
    system = find_system(name)
    arm = posed_arm(system.task, str(system.file("robot.yaml")), True)
    if arm is None or system.task.robot not in HOME:
        raise BidError(f"nobody knows the arm of {name}; valid are franka_place and ur5_pick")
    limits = replace(system.task.limits, workspace_min=(-3.0,) * 3, workspace_max=(3.0,) * 3, max_tilt=3.1)
    return replace(system.task, start=None, limits=limits), arm


def candidates(task: Task, arm: ArmModel) -> NDArray[np.float64]:
    """Return ``(CANDIDATES, H, D)`` motions from :data:`HOME`."""
    place, rotation = arm.forward(np.array(HOME[task.robot]))
    ways = np.random.default_rng(0).normal(size=(CANDIDATES, 3))
    ways *= STEP_M / np.linalg.norm(ways, axis=1, keepdims=True)
    rows = np.zeros((CANDIDATES, task.horizon, task.action_dim))
    begun = np.maximum(np.arange(task.horizon) - task.observation_steps + 1, 0)
    rows[:, :, :3] = place + begun[None, :, None] * ways[:, None]
    rows[:, :, 3:9], rows[:, :, 9] = matrix_to_6d(rotation), task.limits.gripper_max
    return rows


def looks(task: Task, arm: ArmModel) -> Iterator[tuple[str, Callable[[], object], Callable[[object], bool]]]:
    """Yield what is timed: its name, the work, and whether its result says that nothing was refused."""
    samples, screen = candidates(task, arm), Screen(task, None, posed=arm)
    screen.measured = home = np.array(HOME[task.robot])
    place, rotation = arm.forward(home)
    chunk = ActionChunk(NOW_NS, task.dt_ns, samples[0, task.observation_steps - 1 :], task.base_frame)
    envelope = Envelope(task, arm)
    every = lambda found: bool(np.all(found))  # noqa: E731
    yield f"{CANDIDATES} candidates, rules of the tool", lambda: screen.passes(samples), every
    rest, free = screen.rest, screen.free
    assert rest is not None and free is not None
    yield f"{CANDIDATES} candidates, joints behind the poses", lambda: rest(samples), every
    yield "the chosen chunk, its joints and the arm's own parts", lambda: free(samples[0]), every
    check = lambda: envelope.check(chunk, NOW_NS, place, home, rotation)  # noqa: E731
    yield "the safety node: all rules, one chunk", check, lambda verdict: verdict.ok  # type: ignore[attr-defined]


def times_ms(work: Callable[[], object]) -> tuple[float, float, float]:
    """Return median, 99th percentile and maximum of the wall time of a call, ms."""
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        work()
        took.append((time.perf_counter_ns() - begun) / 1e6)
    p50, p99, most = np.percentile(took, [50, 99, 100])
    return float(p50), float(p99), float(most)


def hops_ms(bag: str) -> NDArray[np.float64]:
    """Return the time of each chunk of a policy through the safety node, ms. Raises RecordingError for a bad bag."""
    heard: dict[int, int] = {}
    hops = []
    with BagReader(bag) as reader:
        for item in reader.messages((POLICY_CHUNK, SAFETY_CHUNK)):
            number = item.message.sequence
            if item.topic == POLICY_CHUNK:
                heard[number] = item.stamp_ns
            elif item.message.source == "policy" and 0 <= item.stamp_ns - heard.get(number, -FOLLOWS_NS) < FOLLOWS_NS:
                hops.append((item.stamp_ns - heard[number]) / 1e6)
    return np.array(hops)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=["franka_place", "ur5_pick"])
    parser.add_argument("--bag", action="append", default=[], help="of a run, for the hop; may be repeated")
    options = parser.parse_args()
    lines: list[tuple[object, ...]] = []
    for name in options.systems:
        task, arm = judged(name)
        for what, work, is_kept in looks(task, arm):
            if not is_kept(work()):
                raise BidError(f"{name}: {what}: a motion that should keep every limit is refused")
            lines.append((name, what, *(f"{value:.2f}" for value in times_ms(work))))
    for bag in options.bag:
        p50, p99, most = np.percentile(hops_ms(bag), [50, 99, 100])
        lines.append((bag, "the safety hop, as the recorder hears it", f"{p50:.2f}", f"{p99:.2f}", f"{most:.2f}"))
    print(markdown_table(("system", "what", "ms p50", "p99", "max"), lines))


if __name__ == "__main__":
    main()
