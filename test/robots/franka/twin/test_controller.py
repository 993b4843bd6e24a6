import pytest
from fci_client import MOVING, REFLEX, RawClient, lockstep

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.twin import controller as module
from bid_ros.robots.franka.twin.controller import STEP_NS


@pytest.fixture
def client():
    with lockstep("127.0.46.1") as controller:
        made = RawClient(controller)
        made.connect()
        made.move()
        made.control(3)
        yield made
        made.close()


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self):
        self.now_ns = 10**12

    def monotonic_ns(self):
        return self.now_ns


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def ticks(client, clock, *waits_ns):
    for wait_ns in waits_ns:
        clock.now_ns += wait_ns
        client.controller.tick()
        client.listen()
    return client.state.mode


def test_cycles_on_time_count(client, clock):
    ticks(client, clock, STEP_NS)
    client.control()
    assert ticks(client, clock, *[STEP_NS] * 19) == MOVING
    assert ticks(client, clock, STEP_NS) == REFLEX


def test_a_twin_that_makes_up_for_lost_time_does_not_trip(client, clock):
    ticks(client, clock, STEP_NS)
    client.control()
    assert ticks(client, clock, *[STEP_NS // 3] * 100) == MOVING


def test_a_hold_up_of_the_twin_counts_as_one_lost_command_at_most(client, clock):
    for _ in range(5):
        ticks(client, clock, STEP_NS)
        client.control()
        assert ticks(client, clock, *[10**9] * 18) == MOVING


def test_a_twin_that_is_always_slow_trips_all_the_same(client, clock):
    ticks(client, clock, STEP_NS)
    client.control()
    assert ticks(client, clock, *[10 * STEP_NS] * 21) == REFLEX


def test_a_taken_address_is_one_clear_error(client):
    with pytest.raises(ArmError, match=r"the twin cannot serve 127.0.46.1: ports 1337 and 1338 are taken"):
        lockstep("127.0.46.1").__enter__()
