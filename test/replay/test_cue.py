"""Where a replay decides: on recorded decisions with their samples, or where a live system would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from recording.conftest import add_topic, full_name
from rosbags import rosbag1

from bid_msgs.msg import Decision
from bid_ros.core.data_keys import DataKeys
from bid_ros.core.errors import RecordingError, TaskError
from bid_ros.core.observation import History
from bid_ros.core.topics import DECISION, EPISODE_EVENT, IMAGE_TYPE, POSE_TYPE, TOOL_POSE, camera_topic
from bid_ros.nodes.ros_messages import time_message
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter
from bid_ros.replay.cue import find_decision_times

MS = 1_000_000
START = 1_700_000_000_000_000_000


def cues_of(bag, task, remapped=None, history=None):
    with BagReader(bag, remapped) as reader:
        times = find_decision_times(reader, task, history)
        found = [cue for item in reader.messages(times.topics) for cue in times.take(item)]
        return found + times.finish()


def decision(kit, stamp, task, statuses, **fields):
    """A decision on the frames at ``stamp``, and on the state whose stamp is in ``statuses`` for each row."""
    names = [item.name for item in task.observation]
    rows = {
        name: (stamp - 100 * MS, stamp) if "tool" not in name and "gripper" not in name else statuses for name in names
    }
    values = np.arange(task.horizon * task.action_dim, dtype=np.float32)
    message = Decision(
        observed=names,
        observed_stamps=[time_message(at) for name in names for at in rows[name]],
        steps=task.horizon,
        dims=task.action_dim,
        selected=values.tolist(),
        samples=5,
        screened=2,
        decoder=fields.pop("decoder", "bid"),
        # rclpy overstates the serialized size of empty arrays of doubles.
        backward=[0.0],
        forward=[0.0],
        total=[0.0],
        previous=[0.0],
        delay_steps=-1,
        **fields,
    )
    return kit.stamped(message, stamp)


def test_a_recorded_decision_is_cued_with_the_samples_that_it_was_made_on(kit, make_run, task, tmp_path):
    run, stamp = make_run(), START + 507 * MS
    # The nearest state to the frames is that at 500 ms; the decision had an older one.
    statuses = (START + 400 * MS, START + 460 * MS)
    run.add(DECISION, stamp + 60 * MS, decision(kit, stamp, task, statuses, stream=3, seed=4, sequence=9))
    (cue,) = cues_of(run.write(tmp_path / "bag"), task)
    assert (cue.stamp_ns, cue.stream, cue.problem) == (stamp, 3, "")
    assert cue.observation.samples_ns["tool_position"] == statuses
    place = [kit.reference_at((at - START) / 1e9)[0][0] - 0.02 for at in statuses]
    assert cue.observation.values["tool_position"][:, 0] == pytest.approx(place)
    setting = cue.recorded.setting
    assert (setting.samples, setting.delay, setting.seed) == (7, None, 4)


@pytest.mark.parametrize("recorded", ["bid-paper-nearest", "bid:variant=paper,trim=nearest"])
def test_a_recorded_decoder_is_read_as_it_is_written_today(kit, make_run, task, tmp_path, recorded):
    run, stamp = make_run(), START + 507 * MS
    statuses = (START + 400 * MS, START + 500 * MS)
    run.add(DECISION, stamp + 60 * MS, decision(kit, stamp, task, statuses, decoder=recorded))
    (cue,) = cues_of(run.write(tmp_path / "bag"), task)
    assert cue.recorded.setting.decoder == "bid:variant=paper,trim=nearest"


def test_a_decision_waits_for_a_sample_that_was_noted_after_it(kit, make_run, task, tmp_path):
    run, stamp = make_run(), START + 507 * MS
    statuses = (START + 400 * MS, START + 500 * MS)
    run.add(DECISION, stamp + 20 * MS, decision(kit, stamp, task, statuses))  # the images come 30 to 50 ms later
    (cue,) = cues_of(run.write(tmp_path / "bag"), task)
    assert cue.observation.values["wrist"][1].tobytes() == bytes(kit.image(stamp, "wrist").data)


def test_a_decision_whose_sample_is_lost_has_no_observation_and_says_which(kit, make_run, task, tmp_path):
    run, stamp = make_run(lost_frames=(5,)), START + 507 * MS
    run.add(DECISION, stamp + 60 * MS, decision(kit, stamp, task, (START + 400 * MS, START + 500 * MS)))
    (cue,) = cues_of(run.write(tmp_path / "bag"), task)
    assert cue.observation is None
    assert "'third_person'" in cue.problem and "not in the history" in cue.problem


def test_without_recorded_decisions_each_pair_of_frames_of_an_episode_is_a_moment(make_run, task, tmp_path):
    cues = cues_of(make_run(episodes=2).write(tmp_path / "bag"), task)
    assert {cue.stream for cue in cues} == {1, 2}
    for stream in (1, 2):
        stamps = [cue.stamp_ns for cue in cues if cue.stream == stream]
        begin = START + (stream - 1) * 5_000 * MS
        assert stamps == [begin + (7 + 100 * k) * MS for k in range(len(stamps))] and len(stamps) == 20
    assert all(cue.observation is not None and cue.recorded is None for cue in cues)


def test_a_topic_of_decisions_without_one_is_as_none_and_nothing_is_decided_before_an_episode(make_run, task, tmp_path):
    """As in a run that a person drove: the recorder knows the topic, and frames come while the episode is prepared."""
    run, begun = make_run(), START + 995 * MS
    for number, (_, topic, message) in enumerate(run.items):
        if topic == EPISODE_EVENT and message.kind == message.START:
            message.header.stamp = time_message(begun)
            run.items[number] = begun, topic, message
    bag = tmp_path / "bag"
    with BagWriter(bag) as writer:
        for topic in dict.fromkeys([DECISION, *(topic for _, topic, _ in run.ordered())]):
            add_topic(writer, topic)
        for received, topic, message in run.ordered():
            assert writer.write(full_name(topic), received, serialize_message(message))
    stamps = [cue.stamp_ns for cue in cues_of(bag, task)]
    assert stamps and min(stamps) > begun and {cue.stream for cue in cues_of(bag, task)} == {1}


def test_a_moment_has_as_many_steps_as_the_policy_wants(make_run, task, tmp_path):
    cues = cues_of(make_run().write(tmp_path / "bag"), task, history=History(5, 100 * MS))
    assert len(cues) == 20
    late = cues[-1].observation
    assert all(len(late.values[item.name]) == 5 == len(late.samples_ns[item.name]) for item in task.observation)
    assert np.diff(late.samples_ns["wrist"]).tolist() == [100 * MS] * 4


def test_a_bag_without_episodes_is_one_stream(make_run, task, tmp_path):
    run = make_run()
    run.items = [item for item in run.items if item[1] != EPISODE_EVENT]
    cues = cues_of(run.write(tmp_path / "bag"), task)
    assert {cue.stream for cue in cues} == {0} and len(cues) == 23


def test_cameras_that_are_faster_than_the_task_are_thinned_out(kit, make_run, task, tmp_path):
    run = make_run()
    for stamp in range(START + 57 * MS, START + 2_000 * MS, 100 * MS):
        for camera in ("third_person", "wrist"):
            run.add(camera_topic(camera), stamp + 40 * MS, kit.image(stamp, camera))
    cues = cues_of(run.write(tmp_path / "bag"), task)
    assert len(cues) == 20 and min(np.diff([cue.stamp_ns for cue in cues])) >= 75 * MS


def test_a_missing_topic_is_named_and_may_have_another_name(make_run, task, tmp_path):
    run = make_run()
    run.items = [(at, "/cam/image" if topic == camera_topic("wrist") else topic, it) for at, topic, it in run.items]
    bag = run.write(tmp_path / "bag", like={"/cam/image": "sensor_msgs/msg/Image"})
    with pytest.raises(
        RecordingError, match=r"no topic camera/wrist/image, which delivers 'wrist' .*/cam/image.*--remap"
    ):
        cues_of(bag, task)
    assert len(cues_of(bag, task, {camera_topic("wrist"): "/cam/image"})) == 20


def test_a_bag_of_another_recorder_is_mapped_by_the_task_file(kit, make_run, task, tmp_path):
    """It has no arm status and no episodes: pose and joints have topics of their own, with other names."""
    names = {camera_topic("wrist"): "/eye", camera_topic("third_person"): "/front", TOOL_POSE: "/robot/ee_pose"}
    run = make_run()
    run.items = [(at, names[topic], item) for at, topic, item in run.items if topic in names]
    types = {"/eye": IMAGE_TYPE, "/front": IMAGE_TYPE, "/robot/ee_pose": POSE_TYPE}
    bag = run.write(tmp_path / "bag", like=types)
    seen = tuple(item for item in task.observation if item.kind != "gripper")
    mapped = replace(task, observation=seen, data=DataKeys(topics=names))
    cues = cues_of(bag, mapped, mapped.recorded_names)
    assert len(cues) == 23 and all(cue.observation is not None for cue in cues)
    place = kit.reference_at((cues[9].stamp_ns - START) / 1e9)[0][0] - 0.02
    assert cues[9].observation.values["tool_position"][-1, 0] == pytest.approx(place, abs=0.001)


def test_a_recorded_name_without_a_slash_is_refused():
    with pytest.raises(
        TaskError, match="data topic 'arm/status' is recorded as 'x'; valid is a name that begins with /"
    ):
        DataKeys(topics={"arm/status": "x"})


def test_a_bag_without_a_message_has_no_topics(task, tmp_path):
    with rosbag1.Writer(tmp_path / "empty.bag"):
        pass
    with pytest.raises(
        RecordingError, match=r"has no topic \S+, which .*; it has no topics, for nothing was recorded$"
    ):
        cues_of(tmp_path / "empty.bag", task)
