"""A recorded motion as a device: a slow way to its begin, then the motion, slowed down, inside the limits."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.core.rotation import DOWN_6D
from bid_ros.safety.envelope import Envelope
from bid_ros.teleop.base import DEVICES, EpisodeStart
from bid_ros.teleop.retrace import RAMP_S, RetraceDevice, RetraceSettings

BEGIN_NS = 10**15
DT_NS = 50_000_000
FIRST = np.array([0.5, -0.1, 0.3])


@pytest.fixture
def motion(task, tmp_path):
    """Write a motion that goes 0.2 m along y in 2 s, from standing speed, and opens the gripper after 1.5 s."""
    times = np.arange(101) * 0.02
    rows = np.zeros((101, task.action_dim))
    rows[:, :3] = FIRST + np.array([0, 0.1, 0]) * times[:, np.newaxis]
    rows[:, 3:9] = DOWN_6D
    rows[:, 9] = np.where(times >= 1.5, 0.08, 0.02)
    file = tmp_path / "motion.npz"
    np.savez(file, times=times, actions=rows, signature=task.signature())
    return file


def played(task, file, speed, tool=(0.45, 0.1, 0.4)):
    """Return the times in s, the chunks every 50 ms and the marks of a whole episode."""
    device = RetraceDevice(task, RetraceSettings(motion=str(file), speed=speed))
    device.begin(EpisodeStart("retrace", 0, np.array(tool), np.array(DOWN_6D), {}, BEGIN_NS))
    chunks, marks = [], []
    for tick in range(2_000):
        chunks.append(device.chunk_at(BEGIN_NS + tick * DT_NS, 12, DT_NS))
        marks.append(device.take_mark())
        if marks[-1]:
            break
    return device, chunks, marks


@pytest.mark.parametrize("speed", [1.0, 0.5, 0.2])
def test_it_follows_the_motion_at_its_speed_and_ends_the_episode(task, motion, speed):
    device, chunks, marks = played(task, motion, speed)
    places = np.array([chunk.actions[0] for chunk in chunks])
    assert places[0, :3] == pytest.approx([0.45, 0.1, 0.4]), "it begins where the tool is"
    assert places[-1, :3] == pytest.approx(FIRST + np.array([0, 0.2, 0])), "it ends where the motion ended"
    begun = round(device._approach.duration / 0.05)
    assert np.linalg.norm(places[begun, :3] - FIRST) < 0.001, "it goes to where the motion began"
    assert device.duration_s == pytest.approx(2.0 / speed + RAMP_S)
    middle = round(begun + (RAMP_S + 0.5 / speed) / 0.05)
    assert (places[middle, 1] - places[middle - 4, 1]) / 0.2 == pytest.approx(0.1 * speed, rel=0.02)
    assert marks[-1] == "discard" and not any(marks[:-1])
    assert (len(chunks) - begun) * 0.05 == pytest.approx(device.duration_s + 1.0, abs=0.2)


def test_the_gripper_moves_where_the_tool_was_when_it_did(task, motion):
    _, chunks, _ = played(task, motion, 0.5)
    opened = next(chunk.actions[0] for chunk in chunks if chunk.actions[0][9] > 0.05)
    assert opened[1] == pytest.approx(FIRST[1] + 0.15, abs=0.004)


def test_every_chunk_passes_the_safety_envelope(task, motion):
    _, chunks, _ = played(task, motion, 1.0)
    envelope = Envelope(task)
    for tick, chunk in enumerate(chunks):
        verdict = envelope.check(chunk, BEGIN_NS + tick * DT_NS, chunk.actions[0][:3])
        assert verdict.ok, verdict.reason
    assert {(chunk.source, chunk.frame_id) for chunk in chunks} == {("teleop", task.base_frame)}
    assert [chunk.sequence for chunk in chunks] == list(range(1, len(chunks) + 1))


@pytest.mark.parametrize("speed", [0.0, 1.5])
def test_a_speed_outside_its_range_is_refused(motion, speed):
    with pytest.raises(BidError, match="speed"):
        DEVICES.find("retrace").read(f"{{motion: {motion}, speed: {speed}}}")
