from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from geometry_msgs.msg import Point32, Polygon, PoseStamped, WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, Imu, JointState
from std_msgs.msg import Bool, ByteMultiArray, Float64MultiArray, String

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import BidError, ObservationError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.stamps import sample_ns, stamp_ns
from bid_ros.core.topics import (
    FEATURE_TOPICS,
    JOINT_STATES,
    TOPICS,
    Qos,
    Topic,
    camera_topic,
    feature_topic,
    recorded_topics,
)
from bid_ros.nodes.topics import message_type
from bid_ros.observing.features import carries, extract
from bid_ros.recording.definitions import check_vectors
from bid_ros.recording.reader import BagReader

PICTURE = Feature("wrist", "image", (4, 5, 3))
POSITION = Feature("tool_position", "position", (3,))
ROTATION = Feature("tool_rotation", "rotation_6d", (6,))
WIDTH = Feature("gripper_width", "gripper", (1,))
JOINTS = Feature("joint_positions", "joints", (7,))


def pixels():
    return np.random.default_rng(0).integers(0, 256, (4, 5, 3), np.uint8)


def image(array, encoding="rgb8", padding=0):
    height, width = array.shape[:2]
    rows = np.zeros((height, width * 3 + padding), np.uint8)
    rows[:, : width * 3] = array.reshape(height, -1)
    return Image(height=height, width=width, encoding=encoding, step=rows.shape[1], data=rows.tobytes())


@pytest.fixture
def pose(kit):
    message = kit.stamped(PoseStamped(), 1_500_000_007)
    kit.set_pose(message.pose, (0.4, -0.1, 0.2), 0.7)
    return message


def test_images_of_both_encodings_and_with_padded_rows_give_the_same_pixels():
    for message in (image(pixels()), image(pixels()[:, :, ::-1], "bgr8"), image(pixels(), padding=7)):
        for sent in (message, deserialize_message(serialize_message(message), Image)):
            found = extract(PICTURE, sent)
            assert found.dtype == np.uint8
            np.testing.assert_array_equal(found, pixels())


def test_pose_gripper_and_joints(pose):
    np.testing.assert_array_equal(extract(POSITION, pose), [0.4, -0.1, 0.2])
    np.testing.assert_allclose(extract(ROTATION, pose), matrix_to_6d(matrix_from_vector([0, 0, 0.7])), atol=1e-12)
    np.testing.assert_array_equal(extract(WIDTH, ArmStatus(gripper_width=0.03)), [0.03])
    joints = JointState(position=[0.1 * number for number in range(7)])
    np.testing.assert_allclose(extract(JOINTS, joints), 0.1 * np.arange(7))
    with pytest.raises(ObservationError, match="valid are 7 finite numbers"):  # nothing says which of nine they are
        extract(JOINTS, JointState(position=[0.0] * 9))
    assert stamp_ns(pose) == 1_500_000_007


FR3 = [f"fr3_joint{number}" for number in range(1, 8)]
UR = [f"left_{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")]
SO101 = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"]
FINGERS = {
    5: ["gripper"],
    7: ["fr3_finger_joint1", "fr3_finger_joint2"],
    6: ["left_left_finger_joint", "robotiq_85_left_knuckle_joint"],
}


@pytest.mark.parametrize("arm", [FR3, UR, SO101], ids=["franka", "ur", "other"])
@pytest.mark.parametrize("order", ["base to flange", "alphabet", "reversed"])
@pytest.mark.parametrize("velocity", ["none", "NaN of the fingers", "NaN", "all"])
def test_joints_are_found_by_their_names(arm, order, velocity):
    angle = {name: 0.1 * number for number, name in enumerate([*arm, *FINGERS.get(len(arm), [])])}
    names = {"alphabet": sorted(angle), "reversed": [*angle][::-1]}.get(order, [*angle])
    speeds = {"none": [], "NaN": [math.nan] * len(names), "all": [0.0] * len(names)}
    speeds["NaN of the fingers"] = [0.0 if name in arm else math.nan for name in names]
    message = JointState(name=names, position=[angle[name] for name in names], velocity=speeds[velocity])
    said = tuple(arm) if arm is SO101 else ()
    found = extract(Feature("joint_positions", "joints", (len(arm),), names=said), message)
    np.testing.assert_allclose(found, 0.1 * np.arange(len(arm)))


def test_joints_that_no_name_orders_are_refused():
    message = JointState(name=sorted(SO101), position=[0.0] * 5)
    with pytest.raises(ObservationError, match=r"comes with joints elbow_flex, shoulder_lift, .* order .* not known"):
        extract(Feature("arm", "joints", (5,)), message)
    names = ("base", *SO101[1:])
    with pytest.raises(ObservationError, match="lacks the joints base; the message has elbow_flex, shoulder_lift"):
        extract(Feature("arm", "joints", (5,), names=names), message)
    message.position = message.position[:4]
    with pytest.raises(ObservationError, match="comes with 4 positions of 5 joints"):
        extract(Feature("arm", "joints", (5,), names=names), message)


def test_a_vector_of_a_joint_state_is_taken_by_its_names():
    message = JointState(name=["b", "a", "c"], position=[2.0, 1.0, 3.0], effort=[0.2, 0.1, 0.3])
    feature = Feature(
        "load", "vector", (2,), topic="joints", type="sensor_msgs/msg/JointState", field="effort", names=("a", "b")
    )
    np.testing.assert_array_equal(extract(feature, message), [0.1, 0.2])


def test_joints_of_a_gripper_are_not_those_of_the_arm():
    gripper = JointState(name=FINGERS[7], position=[0.0, 0.0])
    assert not carries(JOINTS, gripper) and carries(JOINTS, JointState(name=FR3, position=[0.0] * 7))
    named = replace(JOINTS, names=tuple(FR3))
    assert not carries(named, gripper) and not carries(named, JointState(name=UR, position=[0.0] * 6))
    assert carries(WIDTH, gripper)


def test_another_number_of_joints_is_refused():
    message = JointState(name=[*UR, *FINGERS[6]], position=[0.0] * 8)
    for size in (5, 7):
        with pytest.raises(ObservationError, match=rf"is \[0\.0, .*\]; valid are {size} finite numbers"):
            extract(Feature("joint_positions", "joints", (size,)), message)


def vector(message, field, size=3):
    kind = f"{type(message).__module__.partition('.')[0]}/msg/{type(message).__name__}"
    return Feature("force", "vector", (size,), topic="sensor/force", type=kind, field=field)


def wrench():
    message = WrenchStamped()
    message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = 1.0, 2.0, -3.0
    message.wrench.torque.z = 0.5
    return message


TURNED = Imu(linear_acceleration_covariance=[0.1 * number for number in range(9)])
VECTORS = [
    (wrench(), "wrench.force", [1, 2, -3]),
    (wrench(), "wrench", [1, 2, -3, 0, 0, 0.5]),
    (wrench(), "wrench.torque.z", [0.5]),
    (TURNED, "orientation", [0, 0, 0, 1]),
    (TURNED, "linear_acceleration_covariance", [0.1 * number for number in range(9)]),
    (JointState(position=[1.0], velocity=[2.0], effort=[4.0, 5.0]), "effort", [4, 5]),
    (Float64MultiArray(data=[1.5, -2.5]), "data", [1.5, -2.5]),
    (Polygon(points=[Point32(x=1.0, y=2.0), Point32(z=3.0)]), "points", [1, 2, 0, 0, 0, 3]),
    (Bool(data=True), "data", [1]),
]


@pytest.mark.parametrize(("message", "field", "values"), VECTORS, ids=lambda item: str(item)[:30])
def test_a_vector_is_all_numbers_of_its_field_live_and_from_a_bag(message, field, values, kit, task, tmp_path):
    feature = vector(message, field, len(values))
    check_vectors(replace(task, observation=(feature,)))
    run = kit.Run()
    run.add(feature.topic, 1_500_000_007, message)
    with BagReader(run.write(tmp_path / "bag", like={feature.topic: feature.type})) as reader:
        (stored,) = reader.messages([feature.topic])
    for one in (message, stored.message):
        found = extract(feature, one)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, values)
        assert sample_ns(one, stored.stamp_ns) == (0 if hasattr(message, "header") else 1_500_000_007)


@pytest.mark.parametrize(
    ("message", "field", "size", "sentence"),
    [
        (wrench(), "wrench.force", 4, r"'force' is \[1\.0, 2\.0, -3\.0\]; valid are 4 finite numbers"),
        (wrench(), "wrench.forc", 3, "field 'wrench.forc'.* no attribute 'forc'; valid are numbers in header, wrench"),
        (wrench(), "wrench.force.x.y", 1, "field 'wrench.force.x.y'"),
        (wrench(), "header", 3, "field 'header': it holds ''; valid are numbers"),
        (String(data="7"), "data", 1, "field 'data': it holds '7'"),
        (ByteMultiArray(data=[b"7"]), "data", 1, "it holds"),
        (Float64MultiArray(data=[math.nan]), "data", 1, r"is \[nan\]; valid are 1 finite numbers"),
        (Float64MultiArray(data=[math.inf] * 99), "data", 99, "'force' is 99 numbers; valid are 99 finite numbers"),
        (Float64MultiArray(), "data", 1, r"is \[\]; valid are 1 finite numbers"),
    ],
)
def test_a_message_without_the_numbers_of_a_vector_is_refused(message, field, size, sentence):
    with pytest.raises(ObservationError, match=sentence) as error:
        extract(vector(message, field, size), message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("feature", "sentence"),
    [
        (vector(wrench(), "wrench.force", 4), r"has shape \(4,\); valid is \(3,\), the numbers of that field"),
        (vector(wrench(), "wrench.forc"), "has no 'forc' there; valid are force, torque"),
        (vector(wrench(), "wrench.force.x.y"), "has no 'y' there; valid are none"),
        (vector(Polygon(), "points.x"), "has no 'x' there; valid are none"),
        (vector(wrench(), "header"), "it holds a string; valid are numbers"),
        (vector(JointState(), "name"), "it holds a string; valid are numbers"),
        (replace(vector(wrench(), "wrench"), type="my_msgs/msg/Touch"), "'my_msgs/msg/Touch' is not installed"),
    ],
)
def test_a_vector_that_no_installed_message_has_is_refused_before_anything_starts(task, feature, sentence):
    with pytest.raises(TaskError, match=rf"^observation 'force' with field .*{sentence}") as error:
        check_vectors(replace(task, observation=(*task.observation, feature)))
    assert "\n" not in str(error.value)


def test_a_vector_brings_its_topic_to_the_recorded_ones(task):
    force = replace(vector(wrench(), "wrench.force"), rate_hz=500.0)
    topics = recorded_topics(replace(task, observation=(*task.observation, force)))
    assert feature_topic(force) == "sensor/force"
    assert topics["sensor/force"] == Topic("geometry_msgs/msg/WrenchStamped", Qos(100, "best_effort"))
    assert len(topics) == len(recorded_topics(task)) + 1
    effort = replace(vector(JointState(), "effort"), topic=JOINT_STATES)
    assert recorded_topics(replace(task, observation=(effort,)))[JOINT_STATES] == TOPICS[JOINT_STATES]


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [
        (
            ["joint_states"],
            "has type 'geometry_msgs/msg/WrenchStamped'; valid on joint_states is sensor_msgs/msg/Joint",
        ),
        (["/joint_states"], "has topic '/joint_states'; valid is 'joint_states'"),
        (["force", "/force"], "has topic '/force'; valid is 'force'"),
        (["tf"], "has topic 'tf'; valid is '/tf'"),
    ],
)
def test_topics_that_cannot_be_told_apart_are_refused(task, topics, sentence):
    vectors = [replace(vector(wrench(), "wrench"), name=topic, topic=topic) for topic in topics]
    with pytest.raises(TaskError, match=sentence):
        recorded_topics(replace(task, observation=tuple(vectors)))


def test_message_from_a_bag_gives_what_the_live_message_gives(make_run, tmp_path, task):
    run = make_run(seconds=0.3)
    sent = run.ordered()
    with BagReader(run.write(tmp_path / "bag")) as reader:
        stored = list(reader.messages({feature_topic(feature) for feature in task.observation}))
    compared = 0
    for feature in task.observation:
        live = [message for _, topic, message in sent if topic == feature_topic(feature)]
        recorded = [item.message for item in stored if item.topic == feature_topic(feature)]
        for one, other in zip(live, recorded, strict=True):
            np.testing.assert_array_equal(extract(feature, one), extract(feature, other))
            assert stamp_ns(one) == stamp_ns(other)
            compared += 1
    assert compared > 100


def test_distances_are_whole_millimetres():
    values = np.array([[0, 1, 700], [1000, 3001, 65535]], np.uint16)
    message = Image(height=2, width=3, encoding="16UC1", step=6, data=values.tobytes())
    found = extract(Feature("front", "image", (2, 3, 1), depth=(0.1, 2.0)), message)
    assert found.dtype == np.uint16 and (found[..., 0] == values).all()


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (image(np.zeros((5, 4, 3), np.uint8)), "image 'wrist' is 5x4; the task says 4x5"),
        (image(pixels(), "yuv422"), "'wrist' publishes encoding 'yuv422'; valid are rgb8, bgr8"),
        (Image(height=4, width=5, encoding="rgb8", step=15, data=bytes(59)), "publishes 59 bytes; valid for 4 rows"),
        (Image(height=4, width=5, encoding="rgb8", step=14, data=bytes(56)), "rows of 14 bytes; valid for 5 px"),
    ],
)
def test_image_of_another_size_or_encoding_is_refused(message, sentence):
    with pytest.raises(ObservationError, match=sentence):
        extract(PICTURE, message)


def test_vectors_that_are_not_what_they_should_be_are_refused(pose, kit):
    with pytest.raises(ObservationError, match=r"'gripper_width' is \[nan\]; valid are 1 finite numbers"):
        extract(WIDTH, ArmStatus(gripper_width=float("nan")))
    with pytest.raises(ObservationError, match="valid are 7 finite numbers"):
        extract(JOINTS, JointState(position=[0.0] * 6))
    pose.pose.orientation.w = 3.0
    with pytest.raises(ObservationError, match="quaternion of length"):
        extract(ROTATION, pose)
    pose.pose.orientation.w = float("nan")
    with pytest.raises(ObservationError, match="quaternion of length nan"):
        extract(ROTATION, pose)
    pose.header.frame_id = "world"
    with pytest.raises(ObservationError, match="in frame 'world'; valid is 'base'"):
        extract(POSITION, pose)


def test_the_topic_of_a_vector_is_found_where_it_was_remapped_to(task, kit, tmp_path):
    run = kit.Run()
    run.add("/left/force", 1_500_000_007, wrench())
    run.add("/other/wrench", 1_500_000_008, wrench())
    remapped = json.dumps({"/ft_sensor/wrench": "/other/wrench"})
    like = dict.fromkeys(("/left/force", "/other/wrench"), "geometry_msgs/msg/WrenchStamped")
    about = {"namespace": "/left", "remapped": remapped}
    with BagReader(run.write(tmp_path / "bag", about=about, like=like)) as reader:
        found = [item.topic for item in reader.messages(["force", "/ft_sensor/wrench"])]
    assert found == ["force", "/ft_sensor/wrench"]


@pytest.mark.parametrize("name", ["no_such_msgs/msg/Touch", "std_msgs/msg/Touch"])
def test_a_message_that_does_not_import_is_named(name):
    with pytest.raises(
        BidError, match=f"^message type '{name}' does not import: .*; valid is one of a sourced package"
    ):
        message_type(name)


def test_every_feature_has_a_recorded_topic(task):
    recorded = recorded_topics(task)
    assert {feature_topic(feature) for feature in task.observation} <= set(recorded)
    assert set(FEATURE_TOPICS.values()) <= set(TOPICS)
    assert list(recorded)[:2] == [camera_topic("third_person"), camera_topic("wrist")]
    with pytest.raises(TaskError, match="no topic delivers observation 'elbow'; valid are tool_position"):
        feature_topic(Feature("elbow", "position", (3,)))
