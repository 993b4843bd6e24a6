"""The motion of a recorded episode."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import ARM_STATUS
from bid_ros.recording.reader import BagReader
from bid_ros.replay.motion import read_recorded_motion
from bid_ros.teleop.retrace import read_motion

MS = 1_000_000


@pytest.fixture
def motion(make_run, task, tmp_path):
    with BagReader(make_run(episodes=2, seconds=2.0).write(tmp_path / "bag")) as reader:
        return read_recorded_motion(reader, task, 1)


def test_it_is_what_was_streamed_from_start_to_end(motion, kit, task):
    assert motion.times[0] == 0 and motion.times[-1] == pytest.approx(1.98, abs=0.021) and motion.seed == 101
    columns = task.columns("position")
    for at in (0, 30, 60, 98):
        place, _, gripper = kit.reference_at(motion.times[at])
        assert motion.actions[at][columns] == pytest.approx(place, abs=1e-6)
        assert motion.actions[at][-1] == pytest.approx(gripper)


def test_a_person_is_told_how_far_and_how_fast(motion, task):
    text = motion.described(task, 0.5)
    assert "at 0.5 times its speed 4.0 s" in text
    assert "at most 0.05 m/s" in text  # 0.1 m/s along x were recorded


def test_its_file_is_read_as_it_was_written_and_only_for_its_task(motion, task, tmp_path):
    from dataclasses import replace

    from bid_ros.core.errors import BidError

    file = tmp_path / "sub" / "motion.npz"
    motion.save(file, task)
    times, rows = read_motion(file, task)
    assert np.array_equal(times, motion.times) and np.array_equal(rows, motion.actions)
    with pytest.raises(BidError, match="is of another task than other"):
        read_motion(file, replace(task, name="other", horizon=9))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(BidError, match="cannot be read"):
        read_motion(file, task)


def test_another_number_of_an_episode_is_refused(make_run, task, tmp_path):
    with (
        BagReader(make_run(episodes=2).write(tmp_path / "bag")) as reader,
        pytest.raises(RecordingError, match=r"episode is 2; valid in .* is 0 to 1"),
    ):
        read_recorded_motion(reader, task, 2)


def test_set_points_with_a_gap_are_refused(make_run, task, tmp_path):
    run = make_run()
    begin = min(at for at, topic, _ in run.items if topic == ARM_STATUS) + 1_000 * MS
    run.items = [it for it in run.items if it[1] != ARM_STATUS or not begin < it[0] < begin + 400 * MS]
    with (
        BagReader(run.write(tmp_path / "bag")) as reader,
        pytest.raises(RecordingError, match=r"lacks set-points for 0\.\d+ s"),
    ):
        read_recorded_motion(reader, task, 0)
