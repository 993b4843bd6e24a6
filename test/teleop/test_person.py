"""A person's device: what happens when the controller is gone, and comes back."""

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.system.folder import find_system
from bid_ros.teleop.base import Start
from bid_ros.teleop.command import Command, Steering
from bid_ros.teleop.person import Controller, PersonDevice

SECOND = 1_000_000_000
DT_NS = 50_000_000
FORWARD = Command(True, np.array([1.0, 0, 0, 0, 0, 0]))


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
    Plugged.there, Plugged.opened, Plugged.closed = True, 0, 0
    device = PersonDevice(find_system("franka_place").task, Plugged)
    device.begin(Start("", 0, np.array([0.48, 0, 0.3]), np.array([1.0, 0, 0, 0, -1, 0]), {}, 0))
    return device


def drive(device: PersonDevice, from_ns: int, steps: int) -> np.ndarray:
    for step in range(steps):
        chunk = device.chunk_at(from_ns + step * DT_NS // 2, 12, DT_NS)
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
