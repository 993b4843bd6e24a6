"""How an arm stopped is found in a recording: the first word, the rest, the way; and what nobody can know."""

import pytest
from rclpy.serialization import serialize_message

from bid_msgs.msg import ArmStatus
from bid_ros.core.topics import ARM_STATUS, TOPICS
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter
from bid_ros.views.stopping import read_stop

START_NS, MS = 1_700_000_000_000_000_000, 1_000_000
LATE_NS = 3 * MS  # until the recorder has a state
DONE_MS, NOTICED_MS, REST_MS, SPEED = 1000, 1100, 1300, 0.1
SINCE_NS = START_NS + DONE_MS * MS


def place_at(ms):
    """A tool at 0.1 m/s that brakes from 1.1 s on, and rests at 1.3 s."""
    braking = min(max(ms - NOTICED_MS, 0), REST_MS - NOTICED_MS) / 1e3
    return SPEED * (min(ms, NOTICED_MS) / 1e3 + braking - braking**2 / (2 * 0.2))


@pytest.fixture
def record(tmp_path):
    """Return a function that records the stop; ``silent``: no state is new after it was done."""

    def made(modes=((NOTICED_MS, ArmStatus.STOPPING), (REST_MS, ArmStatus.STOPPED)), silent=False):
        with BagWriter(tmp_path / "bag") as writer:
            writer.add_topic(f"/{ARM_STATUS}", find_definition(TOPICS[ARM_STATUS].type_name))
            for ms in range(0, 2000, 20):
                mode = next((mode for at, mode in reversed(modes) if ms >= at), ArmStatus.TRACKING)
                message = ArmStatus(mode=mode, reason="" if mode == ArmStatus.TRACKING else f"said at {ms}")
                seen = min(ms, DONE_MS) if silent else ms
                message.tool.position.x = place_at(seen)
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(START_NS + seen * MS, 1000 * MS)
                data = serialize_message(message)
                writer.write(f"/{ARM_STATUS}", START_NS + ms * MS + LATE_NS, data)
        return tmp_path / "bag"

    return made


def test_a_stop_counts_from_when_it_was_done(record):
    found = read_stop(record(), SINCE_NS)
    assert found["reason"] == "said at 1100" and found["noticed_s"] == pytest.approx(0.103)
    assert found["speed"] == pytest.approx(SPEED) and found["rest_s"] == pytest.approx(0.23, abs=0.02)
    assert found["way_mm"] == pytest.approx(20.0, abs=0.1)


def test_without_that_it_counts_from_when_it_was_noticed(record):
    found = read_stop(record())
    assert found["noticed_s"] is None and found["rest_s"] == pytest.approx(0.127, abs=0.02)
    assert found["way_mm"] == pytest.approx(10.0, abs=0.4)


def test_of_a_robot_that_is_not_heard_any_more_nobody_knows_the_rest(record):
    found = read_stop(record(modes=((NOTICED_MS, ArmStatus.FAULT),), silent=True), SINCE_NS)
    assert found["noticed_s"] == pytest.approx(0.103) and found["speed"] == pytest.approx(SPEED)
    assert found["rest_s"] is None and found["way_mm"] is None


@pytest.mark.parametrize("modes", [(), ((NOTICED_MS, ArmStatus.HOLDING),), ((0, ArmStatus.STOPPED),)])
def test_an_arm_that_nothing_stopped_is_told(record, modes):
    """It goes on, or comes to its end; what is latched before it first moves is no stop of a motion."""
    assert read_stop(record(modes=modes), SINCE_NS)["reason"] == ""
