import pytest

from bid_ros.core.topics import ARM_STATUS
from bid_ros.nodes.safety_node import SafetyNode
from bid_ros.safety.parting import ARM, PARTING_S, Parting
from bid_ros.safety.verdict import refused
from bid_ros.safety.watchdog import Watchdog

MS = 1_000_000


@pytest.fixture
def watchdog():
    """An armed watchdog at 0 ns."""
    made = Watchdog({"policy": 0.3, ARM: 0.3})
    made.beat("policy", 0)
    made.beat(ARM, 0)
    made.tick(0)
    return made


def test_an_arm_node_that_dies_with_the_supervisor_is_named(watchdog):
    parting = Parting(watchdog, 10 * MS, True)
    assert not parting.over and not parting.tick(300 * MS)
    assert parting.tick(310 * MS) and parting.over
    assert watchdog.reason == "heartbeat of arm is 310 ms old; the limit is 300 ms"
    assert not parting.tick(320 * MS), "once"


def test_other_nodes_may_end(watchdog):
    parting = Parting(watchdog, 0, True)
    for ms in range(0, 580, 20):
        watchdog.beat(ARM, ms * MS)
        watchdog.beat("policy", 0)
        assert not parting.tick(ms * MS) and not parting.over
    assert not parting.tick(round(1000 * PARTING_S) * MS)
    assert parting.over and not watchdog.stopped


def test_who_moved_nothing_is_not_waited_for(watchdog):
    assert Parting(watchdog, 0, watched=False).over
    watchdog.granted = False
    assert Parting(watchdog, 0, True).over
    watchdog.granted = True
    watchdog.judge(refused("shape", "a chunk has no rows"), 0)
    assert Parting(watchdog, 0, True).over
    assert not Parting(watchdog, 0, True).tick(900 * MS)


def test_a_watchdog_that_waits_keeps_waiting():
    parting = Parting(Watchdog({ARM: 0.3}), 0, True)
    assert parting.over


def test_the_safety_node_outlives_the_arm_node():
    assert SafetyNode.outlives == (ARM_STATUS,)
