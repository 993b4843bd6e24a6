from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, JointState

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import ObservationError, TaskError
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Feature
from bid_ros.core.topics import FEATURE_TOPICS, TOPICS, camera_topic, feature_topic, recorded_topics
from bid_ros.recording.features import extract
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
    joints = JointState(position=[0.1 * number for number in range(9)])
    np.testing.assert_allclose(extract(JOINTS, joints), 0.1 * np.arange(7))
    assert stamp_ns(pose) == 1_500_000_007


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


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (image(np.zeros((5, 4, 3), np.uint8)), "image 'wrist' is 5x4; the task says 4x5"),
        (image(pixels(), "yuv422"), "encoding 'yuv422'; valid are rgb8, bgr8"),
        (Image(height=4, width=5, encoding="rgb8", step=15, data=bytes(59)), "has 59 bytes in rows of 15"),
        (Image(height=4, width=5, encoding="rgb8", step=14, data=bytes(56)), "valid are 4 rows of at least 15"),
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


def test_every_feature_has_a_recorded_topic(task):
    recorded = recorded_topics(task)
    assert {feature_topic(feature) for feature in task.observation} <= set(recorded)
    assert set(FEATURE_TOPICS.values()) <= set(TOPICS)
    assert list(recorded)[:2] == [camera_topic("third_person"), camera_topic("wrist")]
    with pytest.raises(TaskError, match="no topic delivers observation 'elbow'; valid are tool_position"):
        feature_topic(Feature("elbow", "position", (3,)))
