"""A person's device: what happens when the controller is gone, and comes back."""

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.system.folder import find_system
from bid_ros.teleop.base import Command, EpisodeStart, Steering
from bid_ros.teleop.human import Controller, HumanDevice

SECOND = 1_000_000_000
DT_NS = 50_000_000
FORWARD = Command(True, np.array([1.0, 0, 0, 0, 0, 0]))


class Clock:
    """Steady time of the test."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


CLOCK = Clock()


class Plugged(Controller):
    """A controller of this test, which can be pulled out."""

    there, opened, closed = True, 0, 0

    def __init__(self) -> None:
        Plugged.opened += 1
        if not Plugged.there:
            raise BidError("no controller was found")

    def poll(self, now_ns: int) -> Command:
        if not Plugged.there:
            raise BidError("the controller is gone")
        return FORWARD

    def close(self) -> None:
        Plugged.closed += 1


@pytest.fixture
def device():
    Plugged.there, Plugged.opened, Plugged.closed, CLOCK.now_ns = True, 0, 0, 0
    device = HumanDevice(find_system("franka_place").task, Plugged, clock=CLOCK)
    device.begin(EpisodeStart("", 0, np.array([0.48, 0, 0.3]), np.array([1.0, 0, 0, 0, -1, 0]), {}, 0))
    return device


def drive(device: HumanDevice, from_ns: int, steps: int) -> np.ndarray:
    for step in range(steps):
        CLOCK.now_ns = from_ns + step * DT_NS // 2
        chunk = device.chunk_at(CLOCK.now_ns, 12, DT_NS)
        assert chunk is not None
    return chunk.actions


def test_a_controller_that_is_pulled_out_stops_the_arm_and_is_taken_again(device):
    there = drive(device, SECOND, 40)[0, 0]
    Plugged.there = False
    resting = drive(device, 2 * SECOND, 60)
    assert device.problem == "no controller was found"
    np.testing.assert_allclose(resting[:, 0], resting[0, 0], atol=1e-9)
    assert resting[0, 0] < there + 0.05
    assert Plugged.closed == 1
    Plugged.there = True
    assert drive(device, 5 * SECOND, 40)[0, 0] > resting[0, 0] + 0.05
    assert device.problem == ""
    assert Plugged.opened <= 5, "it is looked for once a second"


def test_a_mark_is_told_once(device, monkeypatch):
    monkeypatch.setattr(Plugged, "poll", lambda self, now_ns: Command(mark="success"))
    drive(device, SECOND, 1)
    assert [device.take_mark(), device.take_mark()] == ["success", ""]


def test_a_wall_clock_that_is_set_back_stops_the_arm_where_it_is(device):
    at = drive(device, 5 * SECOND, 40)[0, 0]
    CLOCK.now_ns += DT_NS
    chunk = device.chunk_at(SECOND, 12, DT_NS)
    assert chunk.actions[0, 0] == pytest.approx(at, abs=0.01)
    assert np.abs(np.diff(chunk.actions[:, 0])).max() < 0.01


def test_a_controller_that_may_not_be_opened_again_stays_closed():
    Plugged.there, Plugged.opened = True, 0
    device = HumanDevice(find_system("franka_place").task, Plugged, reopens=False, clock=CLOCK)
    device.begin(EpisodeStart("", 0, np.array([0.48, 0, 0.3]), np.array([1.0, 0, 0, 0, -1, 0]), {}, 0))
    Plugged.there = False
    drive(device, SECOND, 2)
    Plugged.there = True
    drive(device, 5 * SECOND, 40)
    assert (Plugged.opened, device.problem) == (1, "the controller is gone")


def test_nobody_drives_outside_an_episode(device):
    device.end()
    assert device.chunk_at(SECOND, 12, DT_NS) is None


def test_it_begins_with_what_the_fingers_hold(device):
    assert drive(device, SECOND, 1)[0, 9] == 0.0


def test_steering_changes_while_driving(device):
    drive(device, SECOND, 40)
    device.steer(Steering(linear_speed=0.02))
    drive(device, 2 * SECOND, 40)
    before = drive(device, 3 * SECOND, 1)[0, 0]
    after = drive(device, 3 * SECOND, 21)[0, 0]
    assert after - before == pytest.approx(0.02 * 0.5, abs=1e-4)
