from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import serialize_message
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from std_msgs.msg import Float64MultiArray

from bid_ros.cli import main
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ObservationError, RecordingError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import ObservationBuffer
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import load_task
from bid_ros.core.topics import ARM_STATUS, TOOL_POSE, camera_topic, feature_topic
from bid_ros.formats import build_dataset, convert
from bid_ros.formats.bag import BagSource
from bid_ros.observing.features import extract
from bid_ros.recording.dataset import IDLE_ROWS, Dataset
from bid_ros.recording.definitions import Definition
from bid_ros.recording.episodes import find_episodes
from bid_ros.recording.outcomes import ALL, SUCCESS
from bid_ros.recording.writer import BagWriter

START = 1_700_000_000 * NANOSECONDS
MS = 1_000_000


def live_observations(run, task, start_ns, end_ns):
    """What a policy node holds when each frame pair has arrived, from the messages as ROS delivers them."""
    buffer = ObservationBuffer(task)
    found = {}
    for _, topic, message in run.ordered():
        for feature in task.observation:
            if feature_topic(feature) == topic:
                buffer.add(feature.name, stamp_ns(message), extract(feature, message))
        stamp = buffer.stamp_ns()
        if stamp is not None and stamp not in found and start_ns <= stamp <= end_ns:
            found[stamp] = buffer.assemble(stamp)
    return found


def built(run, task, tmp_path, **options):
    reports = []
    dataset = build_dataset([run.write(tmp_path / "bag")], task, progress=reports.append, **options)
    return dataset, reports[0]


def test_rows_equal_what_the_buffer_gave_live_for_the_same_messages(make_run, task, tmp_path):
    run = make_run()
    dataset, report = built(run, task, tmp_path)
    live = live_observations(run, task, START, START + 2 * NANOSECONDS)
    dataset.validate(task)
    assert dataset.rows == report.rows > 10
    for row, stamp in enumerate(dataset.stamps_ns.tolist()):
        for name, values in live[stamp].values.items():
            np.testing.assert_array_equal(dataset.observations[name][row], values[-1])
    # The window of two rows is the live window too.
    for name, values in live[int(dataset.stamps_ns[5])].values.items():
        np.testing.assert_array_equal(dataset.observations[name][4:6], values)


def test_rows_of_a_system_with_a_frame_prefix_are_the_same(make_run, task, tmp_path):
    plain, _ = built(make_run(), task, tmp_path)
    run = make_run()
    for _, topic, message in run.items:
        if topic in (ARM_STATUS, TOOL_POSE):
            message.header.frame_id = "left/base"
    about = {"namespace": "/left", "frame_prefix": "left/"}
    prefixed = build_dataset([run.write(tmp_path / "prefixed", "/left", about)], task)
    prefixed.validate(task)
    np.testing.assert_array_equal(prefixed.actions, plain.actions)
    with pytest.raises(RecordingError, match=r"is in frame .left/base.; valid is .base."):
        build_dataset([run.write(tmp_path / "unsaid", "/left")], task)


@pytest.mark.parametrize("about", [{"namespace": "/left"}, {}], ids=["ours", "of_another_recorder"])
def test_rows_of_a_system_in_a_namespace_are_the_same(make_run, task, tmp_path, about):
    plain, _ = built(make_run(), task, tmp_path)
    spaced = build_dataset([make_run().write(tmp_path / "spaced", "/left", about)], task)
    assert spaced.rows == plain.rows > 10
    np.testing.assert_array_equal(spaced.actions, plain.actions)
    np.testing.assert_array_equal(spaced.observations["wrist"], plain.observations["wrist"])


def test_rows_lie_on_the_grid_of_the_frames_from_start_to_end(make_run, task, tmp_path):
    dataset, report = built(make_run(), task, tmp_path)
    assert (np.diff(dataset.stamps_ns) == task.dt_ns).all()
    # Frames are stamped 7 ms after START and every 100 ms; the last one before END is at 1907 ms.
    assert dataset.stamps_ns[-1] == START + 1907 * MS
    assert (report.episodes, report.used, report.reasons) == (1, 1, ())
    assert (dataset.labels, dataset.seeds.tolist(), dataset.truncated.tolist()) == (("clean",), [100], [False])


def test_actions_are_the_reference_at_the_stamp_of_the_frames(make_run, task, tmp_path, kit):
    dataset, _ = built(make_run(), task, tmp_path)
    for stamp, action in zip(dataset.stamps_ns.tolist(), dataset.actions, strict=True):
        place, turn, gripper = kit.reference_at((stamp - START) / NANOSECONDS)
        np.testing.assert_allclose(action[:3], place, atol=2e-4)
        np.testing.assert_allclose(action[3:9], matrix_to_6d(matrix_from_vector([0, 0, turn])), atol=2e-3)
        assert action[9] == gripper
    assert {0.04, 0.08} == set(dataset.actions[:, 9].tolist())


def test_still_rows_at_the_start_are_dropped_but_for_three(make_run, task, tmp_path):
    dataset, _ = built(make_run(), task, tmp_path)
    still = np.linalg.norm(dataset.actions[:, :3] - dataset.actions[0, :3], axis=1) < 0.001
    assert int(still.argmin()) == IDLE_ROWS
    # The reference moves from 0.8 s on, by more than a millimetre at the frame of 0.907 s.
    assert dataset.stamps_ns[0] == START + (907 - 100 * IDLE_ROWS) * MS


def test_only_successful_episodes_unless_asked(make_run, task, tmp_path):
    run = make_run(episodes=3, success=lambda index: index != 1)
    bag = run.write(tmp_path / "bag")
    reports = []
    dataset = build_dataset([bag], task, progress=reports.append)
    assert dataset.seeds.tolist() == [100, 102]
    assert (reports[0].episodes, reports[0].used, reports[0].reasons) == (3, 2, ("episode 1: left out: timeout",))
    assert build_dataset([bag], task, only_success=False).seeds.tolist() == [100, 101, 102]


def test_several_bags_are_joined_in_order(make_run, task, tmp_path):
    bags = [
        make_run(start_ns=START + number * 60 * NANOSECONDS).write(tmp_path / f"bag{number}") for number in range(2)
    ]
    one = build_dataset(bags[:1], task)
    both = build_dataset(bags, task)
    assert both.episode_ends.tolist() == [one.rows, 2 * one.rows]
    np.testing.assert_array_equal(both.actions[: one.rows], one.actions)
    assert both.stamps_ns[one.rows] - both.stamps_ns[0] == 60 * NANOSECONDS
    both.validate(task)


def test_gap_in_the_frames_splits_the_episode_and_is_reported(make_run, task, tmp_path):
    dataset, report = built(make_run(lost_frames=(12,)), task, tmp_path)
    assert dataset.episodes == 2
    assert dataset.truncated.tolist() == [True, False]
    assert dataset.labels == ("clean", "clean")
    assert report.reasons == ("episode 0: split after row 5: 200 ms to the next",)
    assert dataset.stamps_ns[dataset.episode_ends[0]] - dataset.stamps_ns[dataset.episode_ends[0] - 1] == 200 * MS


def test_piece_shorter_than_the_observation_window_is_left_out_and_reported(make_run, task, tmp_path):
    dataset, report = built(make_run(lost_frames=(12, 14)), task, tmp_path)
    assert dataset.episodes == 2
    assert report.reasons[2] == "episode 0: 1 rows left out: fewer than observation_steps 2"
    dataset.validate(task)


def test_state_that_stops_costs_its_rows_and_says_why(make_run, task, tmp_path):
    run = make_run()
    silent = range(START + 1200 * MS, START + 1500 * MS)
    run.items = [item for item in run.items if item[1] != ARM_STATUS or item[0] not in silent]
    dataset, report = built(run, task, tmp_path)
    assert dataset.episodes == 2
    assert "rows left out: observation 'tool_position' is" in report.reasons[0]

    run = make_run()
    run.items = [item for item in run.items if item[1] != ARM_STATUS or item[0] not in silent]
    _, report = built(run, replace(task, observation=task.observation[:2]), tmp_path / "other")
    assert "rows left out: no reference of the arm near their stamp" in report.reasons[0]


def test_faster_cameras_are_thinned_to_the_rate_of_the_task(make_run, task, tmp_path, kit):
    run = make_run()
    for stamp in range(START + 7 * MS, START + 2000 * MS, 100 * MS):
        for camera in ("third_person", "wrist"):
            run.add(camera_topic(camera), stamp + 50 * MS + 45 * MS, kit.image(stamp + 50 * MS, camera))
    dataset, report = built(run, task, tmp_path)
    assert (np.diff(dataset.stamps_ns) == task.dt_ns).all()
    assert report.reasons == ()


def test_camera_of_another_size_leaves_the_episode_out(make_run, task, tmp_path, kit):
    run = make_run(episodes=2)
    run.add(camera_topic("wrist"), START + 1000 * MS, kit.image(START + 999 * MS, "wrist", height=5))
    dataset, report = built(run, task, tmp_path)
    assert dataset.seeds.tolist() == [101]
    assert report.reasons == ("episode 0: left out: image 'wrist' is 5x8; the task says 6x8",)


def test_a_topic_of_another_type_leaves_the_bag_out(make_run, task, tmp_path):
    bag = make_run().write(tmp_path / "bag", like={"arm/status": "geometry_msgs/msg/PoseStamped"})
    with pytest.raises(RecordingError, match=r"arm/status has type geometry_msgs/msg/PoseStamped; valid is bid_msgs"):
        build_dataset([bag], task)


def test_nothing_usable_is_one_sentence_with_the_reason(make_run, task, tmp_path):
    bag = make_run(success=lambda index: False).write(tmp_path / "bag")
    with pytest.raises(RecordingError, match=r"none of 1 bags has a usable episode .*episode 0: left out: timeout"):
        build_dataset([bag], task)
    still = make_run(seconds=0.7).write(tmp_path / "still")
    with pytest.raises(RecordingError, match="the arm is never told to move in 7 rows"):
        build_dataset([still], task)
    unfinished = make_run()
    unfinished.items = [item for item in unfinished.items if item[0] < START + 1500 * MS]
    with pytest.raises(RecordingError, match="left out: it has no END"):
        build_dataset([unfinished.write(tmp_path / "unfinished")], task)
    with pytest.raises(RecordingError, match="none of 0 bags"):
        build_dataset([], task)


def test_bag_that_cannot_be_read_is_reported_and_the_others_are_used(make_run, task, tmp_path):
    good = make_run().write(tmp_path / "good")
    reports = []
    dataset = build_dataset([tmp_path / "none", good], task, progress=reports.append)
    assert dataset.episodes == 1
    assert reports[0].reasons == (f"bag {tmp_path / 'none'} does not exist",)


def test_without_a_callback_what_was_left_out_is_logged(make_run, task, tmp_path, caplog):
    build_dataset([make_run(lost_frames=(12,)).write(tmp_path / "bag")], task)
    assert "split after row 5" in caplog.text


def test_bag_of_a_killed_recorder_gives_its_finished_episodes(make_run, task, tmp_path):
    whole = build_dataset([make_run(episodes=3).write(tmp_path / "bag")], task)
    file = tmp_path / "bag" / "bag_0.mcap"
    file.write_bytes(file.read_bytes()[:-200])
    reports = []
    cut = build_dataset([tmp_path / "bag"], task, progress=reports.append)
    assert cut.sha256 == whole.sha256
    assert "the recording was not closed" in reports[0].reasons[0]


@pytest.fixture
def kept(tmp_path, task, monkeypatch):
    """Builds the file of a data set as ``bid data build`` does; returns it, the reports, and the names of bags read."""

    def build(bags, task=task, wanted=SUCCESS, told=lambda report: None):
        reports, read = [], []

        def events(reader):
            read.append(reader.path.name)
            return find_episodes(reader)

        monkeypatch.setattr("bid_ros.recording.rows.find_episodes", events)
        source = BagSource(bags, task, wanted, lambda report: (reports.append(report), told(report)))
        convert(source, tmp_path / "out" / "set.npz", "npz", keep=tmp_path / "cache")
        return Dataset.load(tmp_path / "out" / "set.npz"), reports, read

    return build


def test_interrupted_build_goes_on_with_the_bags_that_are_left(make_run, task, tmp_path, kept):
    bags = [
        make_run(2, 1.2, START + number * 60 * NANOSECONDS, lambda index: not index).write(tmp_path / f"bag{number}")
        for number in range(3)
    ]
    fresh = build_dataset(bags[:2], task)

    def interrupt(report):
        if report.path.endswith("bag0"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept(bags[:2], told=interrupt)
    resumed, reports, read = kept(bags[:2])
    assert read == ["bag1"]
    assert [(report.episodes, report.used, report.rows) for report in reports] == [(2, 1, fresh.rows // 2)] * 2
    assert [report.reasons for report in reports] == [("episode 1: left out: timeout",)] * 2
    assert resumed.sha256 == fresh.sha256
    more, reports, read = kept([bags[2], *bags[:2]])
    assert read == ["bag2"] and len(reports) == 3
    assert more.sha256 == build_dataset([bags[2], *bags[:2]], task).sha256


def test_a_build_that_stopped_inside_a_bag_reports_all_of_it(make_run, task, tmp_path, kept, monkeypatch):
    run = make_run(episodes=4, lost_frames=(12,), success=lambda index: index != 1)
    bag = run.write(tmp_path / "bag")
    whole = []
    fresh = build_dataset([bag], task, progress=whole.append)
    assert fresh.episodes > 3, "an episode is in two pieces"
    for number in range(1, fresh.episodes):

        def stop(episodes, rows, number=number):
            if episodes == number:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            convert(BagSource([bag], task), tmp_path / "out" / "set.npz", "npz", progress=stop, keep=tmp_path / "cache")
    resumed, reports, _ = kept([bag])
    assert reports == whole
    assert resumed.sha256 == fresh.sha256


def test_the_command_replaces_its_file_and_says_the_same_after_a_bag_was_added(make_run, kit, tmp_path, capsys):
    (tmp_path / "task.yaml").write_text(json.dumps(kit.TASK))
    out = ["--task", str(tmp_path / "task.yaml"), "--out", str(tmp_path / "data" / "set")]
    bags = [make_run(2, success=lambda index: not index).write(tmp_path / "runs" / name / "bag") for name in "abc"]
    shutil.move(bags[1], tmp_path / "later")
    assert main(["data", "build", str(tmp_path / "runs"), *out]) == 0
    first = capsys.readouterr().err.splitlines()
    assert first[1] == "  episode 1: left out: timeout" and "of 2 episodes" in first[0]
    shutil.move(tmp_path / "later", bags[1])
    assert main(["data", "build", str(tmp_path / "runs"), *out, "--json"]) == 0
    printed = capsys.readouterr()
    lines, report = printed.err.splitlines(), json.loads(printed.out)
    assert [*lines[:2], *lines[4:6]] == first[:4]
    whole = build_dataset(bags, load_task(tmp_path / "task.yaml"))
    assert lines[6] == f"{tmp_path}/data/set: 3 episodes, {whole.rows} rows, sha256 {whole.sha256}"
    assert Dataset.load(tmp_path / "data" / "set").sha256 == whole.sha256
    assert (report["episodes"], report["rows"], report["sha256"]) == (3, whole.rows, whole.sha256)
    assert [bag["reasons"] for bag in report["bags"]] == [["episode 1: left out: timeout"]] * 3


def test_kept_rows_are_not_those_of_another_task_a_changed_bag_or_damaged_files(make_run, task, tmp_path, kept):
    bag = make_run(episodes=2, success=lambda index: index == 0).write(tmp_path / "bag")
    first, _, read = kept([bag])
    assert read == ["bag"]
    again, _, read = kept([bag])
    assert again.sha256 == first.sha256 and read == []
    every, _, read = kept([bag], wanted=ALL)
    assert every.episodes == 2 and read == ["bag"]
    assert kept([bag], replace(task, horizon=9))[2] == ["bag"]
    for part in (tmp_path / "cache").rglob("*.npz"):
        part.write_bytes(b"")
    again, reports, read = kept([bag])
    assert again.sha256 == first.sha256 and read == ["bag"]
    assert reports[0].reasons == ("episode 1: left out: timeout",)
    make_run(start_ns=START + NANOSECONDS).write(tmp_path / "next")
    (tmp_path / "next" / "next_0.mcap").replace(bag / "bag_0.mcap")
    changed, _, read = kept([bag])
    assert changed.sha256 != first.sha256 and read == ["bag"]


def test_task_that_nothing_was_recorded_for_is_refused_at_once(task, tmp_path):
    unknown = replace(task, observation=(*task.observation, Feature("elbow", "position", (3,))))
    with pytest.raises(TaskError, match="no topic delivers observation 'elbow'"):
        build_dataset([tmp_path / "none"], unknown)


def test_six_joints_and_numbers_of_other_topics_are_observed(make_run, task, tmp_path, kit):
    run = make_run()
    for stamp in range(START - 500 * MS, START + 2300 * MS, 10 * MS):
        wrench = WrenchStamped()
        wrench.wrench.force.z = (stamp - START) / NANOSECONDS
        run.add("/ft/wrench", stamp + 2 * MS, kit.stamped(wrench, stamp, "ft_link"))
        run.add("skin", stamp + 1 * MS, Float64MultiArray(data=[float(stamp - START), 1.0]))
    for _, topic, message in run.items:
        if topic == ARM_STATUS:
            message.joint_positions = [stamp_ns(message) % NANOSECONDS / 1e9 + joint for joint in range(6)]
    wrench_type, skin_type = "geometry_msgs/msg/WrenchStamped", "std_msgs/msg/Float64MultiArray"
    observed = (
        Feature("joint_positions", "joints", (6,), rate_hz=100),
        Feature("force", "vector", (3,), rate_hz=100, topic="/ft/wrench", type=wrench_type, field="wrench.force"),
        Feature("skin", "vector", (2,), rate_hz=100, topic="skin", type=skin_type, field="data"),
    )
    ur = replace(task, robot="ur", observation=(*task.observation, *observed))
    bag = run.write(tmp_path / "bag", like={"/ft/wrench": wrench_type, "skin": skin_type})
    dataset = build_dataset([bag], ur)
    dataset.validate(ur)
    plain = build_dataset([bag], task)
    np.testing.assert_array_equal(dataset.actions, plain.actions)
    # States of the arm are stamped every 20 ms, other samples every 10 ms; those without a header are logged later.
    nearest = np.round((dataset.stamps_ns - START) / (10 * MS)) * 10 * MS
    logged = np.round((dataset.stamps_ns - START - MS) / (10 * MS)) * 10 * MS
    np.testing.assert_allclose(dataset.observations["force"][:, 2], nearest / NANOSECONDS, atol=1e-12)
    np.testing.assert_array_equal(dataset.observations["skin"], np.stack([logged, np.ones(len(logged))], axis=1))
    measured = np.round((dataset.stamps_ns - START) / (20 * MS))[:, None] * 20 * MS
    np.testing.assert_allclose(dataset.observations["joint_positions"], measured / 1e9 % 1 + np.arange(6), atol=1e-6)
    seven = replace(task, observation=(*task.observation, Feature("joint_positions", "joints")))
    with pytest.raises(RecordingError, match=r"observation 'joint_positions' is .*; valid are 7 finite numbers"):
        build_dataset([bag], seven)


def test_data_set_of_a_run_survives_its_file(make_run, task, tmp_path):
    dataset, _ = built(make_run(), task, tmp_path)
    dataset.save(tmp_path / "data.npz")
    loaded = Dataset.load(tmp_path / "data.npz")
    loaded.validate(task)
    assert loaded.sha256 == dataset.sha256


def test_live_buffer_of_the_test_can_fail(make_run, task):
    # Guards the parity test: the live side really refuses what is not there.
    run = make_run()
    run.items = [item for item in run.items if item[1] != ARM_STATUS]
    with pytest.raises(ObservationError, match="'tool_position' has not arrived yet"):
        live_observations(run, task, START, START + NANOSECONDS)


def test_rows_of_a_bag_whose_arm_status_had_no_pose_are_the_same(make_run, task, tmp_path, kit):
    """Until it had one, the pose of the tool came from a topic of its own, with the same stamps."""
    plain, _ = built(make_run(), task, tmp_path)
    now = kit.definition("bid_msgs/msg/ArmStatus")
    new = ("geometry_msgs/Pose tool", "float64[] joint_positions")
    text = "".join(line for line in now.text.splitlines(keepends=True) if not line.startswith(new))
    old, store = Definition(now.type_name, text, "RIHS01_old"), get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(now.text, now.type_name))
    stripped = get_typestore(Stores.EMPTY)
    stripped.register(get_types_from_msg(text, now.type_name))
    names = [name for name, _ in stripped.fielddefs[now.type_name][1]]
    assert len(names) == len(store.fielddefs[now.type_name][1]) - 2
    with BagWriter(tmp_path / "old") as writer:
        run = make_run()
        for topic in dict.fromkeys(topic for _, topic, _ in run.ordered()):
            if topic == ARM_STATUS:
                writer.add_topic(f"/{topic}", old)
            else:
                kit.add_topic(writer, topic)
        for received, topic, message in run.ordered():
            data = serialize_message(message)
            if topic == ARM_STATUS:
                found = store.deserialize_cdr(data, now.type_name)
                status = stripped.types[now.type_name](**{name: getattr(found, name) for name in names})
                data = bytes(stripped.serialize_cdr(status, now.type_name))
            writer.write(f"/{topic}", received, data)
    dataset = build_dataset([tmp_path / "old"], task)
    dataset.validate(task)
    assert dataset.rows > 10 and abs(dataset.rows - plain.rows) <= 1
    np.testing.assert_allclose(dataset.observations["tool_position"][:10], plain.observations["tool_position"][:10])
