"""How a tool follows its set-points: known lags and errors are found again."""

import json

import numpy as np
import pytest
from rclpy.serialization import serialize_message

from bid_msgs.msg import ArmStatus
from bid_ros.cli import main
from bid_ros.core.topics import ARM_STATUS, TOPICS
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter
from bid_ros.views.lag import LONGEST_S, followed, followed_line, followed_report

TIMES = 1.7e9 + 0.02 * np.arange(200)  # s


def poses(times, turn=0.0, off=0.0):
    """A tool on a circle, turned about z."""
    t = times - TIMES[0]
    place = np.stack([0.2 * np.cos(t), 0.2 * np.sin(t) + off, 0.0 * t], axis=1)
    quaternion = np.tile([0.0, 0.0, np.sin(turn / 2), np.cos(turn / 2)], (len(t), 1))
    return np.concatenate([place, quaternion], axis=1)


@pytest.mark.parametrize("lag_s", [0.0, 0.033, 0.2])
def test_a_lag_is_found_to_a_millisecond(lag_s):
    found = followed(TIMES, poses(TIMES), TIMES + 0.005, poses(TIMES + 0.005 - lag_s))
    assert found.lag_s == pytest.approx(lag_s, abs=0.001)
    assert found.off_m.max() < 2e-4 and found.turned_rad.max() < 1e-6


def test_a_tool_that_does_not_follow_is_not_given_a_lag():
    report = followed_report(followed(TIMES, poses(TIMES), TIMES, poses(TIMES - 0.8)))
    assert report["lag_s"] == LONGEST_S
    assert followed_line(report) == "the tool lags by 400 ms or more: it does not follow its set-points"


def test_what_a_lag_does_not_tell_is_an_error_and_a_turn():
    found = followed(TIMES, poses(TIMES), TIMES, poses(TIMES - 0.05, turn=0.1, off=0.003))
    assert found.lag_s == pytest.approx(0.05, abs=0.02)
    assert np.median(found.off_m) == pytest.approx(0.003, abs=0.002)
    assert found.turned_rad == pytest.approx(np.full(len(found.turned_rad), 0.1), abs=1e-6)


def test_a_tool_that_stands_tells_no_lag():
    still = np.tile(poses(TIMES[:1]), (len(TIMES), 1))
    report = followed_report(followed(TIMES, still, TIMES, still))
    assert report == {"lag_s": None, "off_mm": None, "turned_rad": None}
    assert followed_line(report) == "the tool moved too little to tell its lag"


def test_nothing_is_told_across_a_gap_of_the_set_points():
    kept = (TIMES[80] > TIMES) | (TIMES[120] < TIMES)
    elsewhere = poses(TIMES - 0.05)
    elsewhere[81:120, 0] += 1.0
    found = followed(TIMES[kept], poses(TIMES)[kept], TIMES[kept], elsewhere[kept])
    assert found.lag_s == pytest.approx(0.05, abs=0.001) and found.off_m.max() < 2e-4


def test_the_command_says_the_lag_of_a_bag(tmp_path, capsys):
    name = TOPICS[ARM_STATUS].type_name
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic(f"/{ARM_STATUS}", find_definition(name))
        for at, wanted, tool in zip(TIMES, poses(TIMES), poses(TIMES - 0.04), strict=True):
            message = ArmStatus(mode=ArmStatus.TRACKING, source="policy", sequence=1)
            for stamp in (message.header.stamp, message.reference_stamp):
                stamp.sec, stamp.nanosec = divmod(round(at * 1e9), 10**9)
            for pose, values in ((message.reference, wanted), (message.tool, tool)):
                pose.position.x, pose.position.y, pose.position.z = values[:3].tolist()
            assert writer.write(f"/{ARM_STATUS}", round(at * 1e9), serialize_message(message))
    assert main(["episodes", "motion", str(tmp_path / "bag"), "--task", "ur5_pick"]) == 0
    assert "the tool lags by 40 ms; but for that it is off by 0." in capsys.readouterr().out
    assert main(["episodes", "motion", str(tmp_path / "bag"), "--task", "ur5_pick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tool"]["lag_s"] == pytest.approx(0.04, abs=0.001)
