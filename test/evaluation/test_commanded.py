"""The commanded motion of a bag, from real messages."""

import json

import numpy as np
import pytest
from rclpy.serialization import serialize_message

from bid_msgs.msg import ArmStatus
from bid_ros.cli import main
from bid_ros.errors import RecordingError
from bid_ros.evaluation.commanded import commanded_report, commanded_table, read_commanded
from bid_ros.limits import Limits
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.topics import ARM_STATUS, TOPICS
from bid_ros.recording.writer import BagWriter

LIMITS = Limits((0.0, -1.0, 0.0), (1.0, 1.0, 1.0), max_speed=0.5, max_acceleration=5.0)
SECOND = 1_000_000_000
PERIOD = 20_000_000


def status(k, velocity, sequence, turn=0.0, mode=ArmStatus.TRACKING):
    message = ArmStatus(mode=mode, source="policy", sequence=sequence)
    message.reference_twist = np.array([velocity, 0.0, 0.0, 0.0, 0.0, turn])
    message.reference_stamp.sec, message.reference_stamp.nanosec = divmod(SECOND + k * PERIOD, SECOND)
    return message


def recorded(path, messages):
    found = find_definition(TOPICS[ARM_STATUS])
    with BagWriter(path) as writer:
        writer.add_topic(ARM_STATUS, found.type_name, found.text, found.type_hash)
        for k, message in enumerate(messages):
            # Received in bursts, as a busy computer does it: nothing may be concluded from the time of receipt.
            assert writer.write(ARM_STATUS, 5 * SECOND + k // 3 * 3 * PERIOD + k, serialize_message(message))
    return path


def test_speeds_and_accelerations_are_those_between_the_instants(tmp_path):
    # 0.08 m/s in 20 ms are 4 m/s^2; the chunk changes at the third.
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(1, 0.08, 1), status(2, 0.1, 2), status(3, 0.1, 2)])
    motion = read_commanded(bag)
    np.testing.assert_allclose(motion.speeds, [0.0, 0.08, 0.1, 0.1])
    np.testing.assert_allclose(motion.accelerations, [4.0, 1.0, 0.0], atol=1e-9)
    assert motion.changed.tolist() == [False, True, False]
    quantities = commanded_report(motion, LIMITS)["quantities"]
    assert quantities["acceleration at a change of chunk, m/s^2"]["max"] == pytest.approx(1.0)
    assert quantities["acceleration elsewhere, m/s^2"]["max"] == pytest.approx(4.0)
    assert all(row["above"] == 0 for row in quantities.values())


def test_a_step_above_a_limit_is_counted_where_it_was(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(1, 0.11, 2), status(2, 0.11, 2, turn=0.3)])
    quantities = commanded_report(read_commanded(bag), LIMITS)["quantities"]
    assert quantities["acceleration at a change of chunk, m/s^2"]["above"] == 1
    assert quantities["acceleration elsewhere, m/s^2"]["above"] == 0
    assert quantities["turning elsewhere, rad/s^2"]["above"] == 1


def test_a_fault_ends_and_begins_a_motion(tmp_path):
    """After a recovery the set-point starts at rest where the arm stands, which is no step of a command."""
    fault = ArmStatus.FAULT
    bag = recorded(tmp_path / "bag", [status(0, 0.4, 1), status(1, 0.0, 1, mode=fault), status(2, 0.0, 2)])
    assert commanded_report(read_commanded(bag), LIMITS)["quantities"]["acceleration elsewhere, m/s^2"]["max"] is None


def test_a_status_that_came_twice_counts_once(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(0, 0.0, 1), status(1, 0.05, 1)])
    assert len(read_commanded(bag).instants_ns) == 2


def test_a_bag_without_motion_is_refused_in_one_sentence(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1)])
    with pytest.raises(RecordingError, match=r"has 1 set-points on /arm/status; valid is 2 or more"):
        read_commanded(bag)


def test_the_command_prints_draws_and_says_whether_all_was_inside(tmp_path, capsys):
    good = recorded(tmp_path / "good", [status(k, 0.05 * min(k, 4), k // 5) for k in range(20)])
    picture = tmp_path / "plots" / "motion.png"
    assert main(["motion", str(good), "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "20 set-points in 0.4 s, changes of chunk: 3" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    bad = recorded(tmp_path / "bad", [status(0, 0.0, 1), status(1, 0.7, 2)])
    assert main(["motion", str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["quantities"]["speed, m/s"]["above"] == 1


def test_the_table_has_a_row_per_quantity(tmp_path):
    bag = recorded(tmp_path / "bag", [status(k, 0.0, 1) for k in range(3)])
    lines = commanded_table(commanded_report(read_commanded(bag), LIMITS)).splitlines()
    assert len(lines) == 8
    assert "       -       -       -" in lines[4], "no change of chunk, no percentiles"
