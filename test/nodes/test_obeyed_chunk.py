"""What the arm node asks of a chunk by itself: what it does after somebody set the clock of its computer."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.clocks import Instant
from bid_ros.core.task import load_task
from bid_ros.nodes.obeyed_chunk import ObeyedChunks
from bid_ros.nodes.ros_messages import chunk_to_message

MS = 1_000_000
BEGIN = 1_700_000_000 * NANOSECONDS


class Arm:
    """An arm node's look at chunks that are decided 10 times a second and arrive 100 ms after their stamp."""

    def __init__(self, root) -> None:
        self.task = load_task(root / "config/franka_place/task.yaml")
        self.steady_ns, self.set_ns, self.sender_ns = 0, 0, 0
        self.chunks = ObeyedChunks(self.task, self.now())

    def now(self) -> Instant:
        return Instant(BEGIN + self.steady_ns + self.set_ns, self.steady_ns)

    def follows(self, seconds=1.0):
        """Return how many of the chunks of so many s are followed."""
        followed = 0
        for _ in range(round(10 * seconds)):
            self.steady_ns += 100 * MS
            self.chunks.clock_was_set(self.now())
            stamp = BEGIN + self.steady_ns + self.sender_ns - 100 * MS
            actions = np.zeros((self.task.horizon - 1, self.task.action_dim))
            chunk = ActionChunk(stamp, self.task.dt_ns, actions, sequence=self.steady_ns // MS)
            followed += self.chunks.read(chunk_to_message(chunk, self.task, ""), self.now()) is not None
        return followed

    def set(self, seconds, everywhere=False):
        """Set the clock of this computer; the sender is on it, too, or on another one."""
        self.set_ns += round(seconds * NANOSECONDS)
        self.sender_ns += round(seconds * NANOSECONDS) if everywhere else 0


@pytest.fixture
def arm(root):
    made = Arm(root)
    assert made.follows() == 10
    return made


@pytest.mark.parametrize("seconds", [0.25, 0.5, 3600.0])
def test_a_clock_that_is_set_forward_makes_the_chunks_of_another_computer_old(arm, seconds):
    """They would be followed where they are not due yet."""
    arm.set(seconds)
    assert arm.follows(2.0) == 0
    said = arm.chunks.refusal(arm.steady_ns)
    assert f"set forward by {seconds:.1f} s" in said or "clock" in said
    arm.set(-seconds)
    assert arm.follows() == 10, "both clocks agree again"


@pytest.mark.parametrize("seconds", [0.05, 0.5, -0.5, 3600.0])
def test_a_clock_that_is_set_for_sender_and_arm_stops_nothing(arm, seconds):
    arm.set(seconds, everywhere=True)
    assert arm.follows() == 10


def test_a_small_step_of_a_time_service_stops_nothing(arm):
    arm.set(0.04)
    assert arm.follows() == 10


def test_a_clock_that_is_set_right_is_followed(root):
    """The arm's clock was late, so chunks seemed to come from the near future."""
    made = Arm(root)
    made.set(-0.15)
    assert made.follows() == 10
    made.set(0.15)
    assert made.follows() == 10


def test_a_control_thread_that_looks_later_still_hears_of_the_step(arm):
    arm.set(0.5)
    assert arm.chunks.read(chunk_to_message(ActionChunk(0, 1, np.zeros((1, 1))), arm.task, ""), arm.now()) is None
    assert "was set forward by 0.5 s; older chunks are forgotten" in arm.chunks.clock_was_set(arm.now())
    assert arm.chunks.clock_was_set(arm.now()) == ""
