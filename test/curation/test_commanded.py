"""The commanded motion of a bag, from real messages."""

import json

import numpy as np
import pytest
from rclpy.serialization import serialize_message

from bid_msgs.msg import ArmStatus, Heartbeat
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.core.limits import Limits
from bid_ros.core.topics import ARM_STATUS, TOPICS
from bid_ros.curation.commanded import commanded_report, commanded_table, read_commanded
from bid_ros.recording.definitions import find_definition
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
    found = find_definition(TOPICS[ARM_STATUS].type_name)
    with BagWriter(path) as writer:
        writer.add_topic(f"/{ARM_STATUS}", found)
        for k, message in enumerate(messages):
            # Received in bursts, as a busy computer does it: nothing may be concluded from the time of receipt.
            assert writer.write(f"/{ARM_STATUS}", 5 * SECOND + k // 3 * 3 * PERIOD + k, serialize_message(message))
    return path


def test_speeds_and_accelerations_are_those_between_the_instants(tmp_path):
    # 0.08 m/s in 20 ms are 4 m/s^2; the chunk changes at the fourth.
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(1, 0.08, 1), status(2, 0.08, 1), status(3, 0.1, 2)])
    motion = read_commanded(bag)
    np.testing.assert_allclose(motion.speeds[:, 0], [0.0, 0.08, 0.08, 0.1])
    np.testing.assert_allclose(motion.accelerations[:, 0], [4.0, 0.0, 1.0], atol=1e-9)
    quantities = commanded_report(motion, LIMITS)["quantities"]
    assert quantities["acceleration at a change of chunk, m/s^2"]["max"] == pytest.approx(1.0)
    assert quantities["acceleration elsewhere, m/s^2"]["max"] == pytest.approx(4.0)
    assert all(row["above"] == 0 for row in quantities.values())


def test_a_step_above_a_limit_is_counted_where_it_was(tmp_path):
    bag = recorded(
        tmp_path / "bag", [status(0, 0.0, 1), status(1, 0.11, 2), status(2, 0.11, 2), status(3, 0.11, 2, turn=0.3)]
    )
    quantities = commanded_report(read_commanded(bag), LIMITS)["quantities"]
    assert quantities["acceleration at a change of chunk, m/s^2"]["above"] == 1
    assert quantities["acceleration elsewhere, m/s^2"]["above"] == 0
    assert quantities["turning elsewhere, rad/s^2"]["above"] == 1


def test_nothing_is_commanded_in_a_fault(tmp_path):
    """After a recovery the set-point starts at rest where the arm stands, which is no step of a command."""
    fault = ArmStatus.FAULT
    bag = recorded(tmp_path / "bag", [status(0, 0.4, 1), status(1, 0.9, 1, mode=fault), status(2, 0.0, 2)])
    report = commanded_report(read_commanded(bag), LIMITS)
    assert report["left_out"] == 2 and report["changes_of_chunk"] == 0
    assert report["quantities"]["acceleration elsewhere, m/s^2"]["max"] is None
    assert report["quantities"]["speed, m/s"]["max"] == pytest.approx(0.4)


def test_nothing_is_said_across_a_gap_of_the_recording(tmp_path):
    messages = [status(k, 0.0, 1) for k in (0, 1, 2, 3, 60, 61)]
    messages[4].reference_twist[0] = messages[5].reference_twist[0] = 0.4
    motion = read_commanded(recorded(tmp_path / "bag", messages))
    assert motion.continuous.tolist() == [True, True, True, False, True]


def test_a_change_shows_in_its_interval_and_the_next(tmp_path):
    """What a chunk does may begin with the last set-point before a status, most of it then lies behind that."""
    bag = recorded(tmp_path / "bag", [status(k, 0.0, 1 + (k >= 2)) for k in range(6)])
    assert read_commanded(bag).changed.tolist() == [False, True, True, False, False]


def test_the_begin_of_a_motion_is_no_change_of_chunk(tmp_path):
    messages = [status(k, 0.0, 0) for k in range(4)]
    messages[0].source = messages[1].source = ""
    assert not read_commanded(recorded(tmp_path / "bag", messages)).takeovers.any()


def test_set_points_are_put_in_order(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(2, 0.1, 1), status(1, 0.05, 1)])
    np.testing.assert_allclose(read_commanded(bag).speeds[:, 0], [0.0, 0.05, 0.1])


def test_a_status_that_came_twice_counts_once(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(0, 0.0, 1), status(1, 0.05, 1)])
    assert len(read_commanded(bag).instants_ns) == 2


def test_a_bag_without_motion_is_refused_in_one_sentence(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1)])
    with pytest.raises(RecordingError, match=r"holds 1 set-point\(s\) on arm/status; valid is 2 or more"):
        read_commanded(bag)


def test_a_set_point_that_is_not_finite_is_refused(tmp_path):
    bag = recorded(tmp_path / "bag", [status(0, 0.0, 1), status(1, np.nan, 1)])
    with pytest.raises(RecordingError, match="set-point 1 on arm/status is not finite"):
        read_commanded(bag)


def test_a_bag_from_before_set_points_had_an_instant_is_refused(tmp_path):
    """Its own definition of the message is read, as every bag is; the field is missing there."""
    found = find_definition("bid_msgs/msg/Heartbeat")
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic(f"/{ARM_STATUS}", found)
        assert writer.write(f"/{ARM_STATUS}", SECOND, serialize_message(Heartbeat(node="arm")))
    with pytest.raises(RecordingError, match="before set-points carried their instants; record anew"):
        read_commanded(tmp_path / "bag")


def test_a_bag_without_arm_status_is_refused(tmp_path):
    found = find_definition("bid_msgs/msg/Heartbeat")
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic("/heartbeat", found)
        assert writer.write("/heartbeat", SECOND, serialize_message(Heartbeat(node="arm")))
    with pytest.raises(RecordingError, match=r"holds 0 set-point\(s\)"):
        read_commanded(tmp_path / "bag")


def test_the_command_prints_draws_and_says_whether_all_was_inside(tmp_path, capsys):
    (tmp_path / "run.json").write_text('{"task": "ur5_pick"}')
    good = recorded(tmp_path / "good", [status(k, 0.05 * min(k, 4), k // 5) for k in range(20)])
    picture = tmp_path / "plots" / "motion.png"
    assert main(["episodes", "motion", str(good), "--plot", str(picture)]) == 0
    assert "20 set-points in 0.4 s, changes of chunk: 3" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    bad = recorded(tmp_path / "bad", [status(0, 0.0, 1), status(1, 0.7, 2)])
    assert main(["episodes", "motion", str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["quantities"]["speed, m/s"]["above"] == 1


def test_the_command_does_not_guess_whose_limits_count(tmp_path, capsys):
    bag = recorded(tmp_path / "bag", [status(k, 0.0, 1) for k in range(3)])
    assert main(["episodes", "motion", str(bag)]) == 2
    assert "does not say which task was recorded" in capsys.readouterr().err
    assert main(["episodes", "motion", str(bag), "--task", "franka_place"]) == 0


def test_a_picture_that_cannot_be_written_is_one_sentence(tmp_path, capsys):
    bag = recorded(tmp_path / "bag", [status(k, 0.0, 1) for k in range(3)])
    (tmp_path / "file").touch()
    assert (
        main(["episodes", "motion", str(bag), "--task", "ur5_pick", "--plot", str(tmp_path / "file" / "motion.png")])
        == 2
    )
    assert capsys.readouterr().err.startswith("error: ")


def test_the_table_has_a_row_per_quantity(tmp_path):
    bag = recorded(tmp_path / "bag", [status(k, 0.0, 1) for k in range(3)])
    lines = commanded_table(commanded_report(read_commanded(bag), LIMITS)).splitlines()
    assert len(lines) == 8
    assert "       -       -       -" in lines[4], "no change of chunk, no percentiles"
