"""Shaded pictures of a run: the robot as it looks, where the bag says it was. A policy's images have nothing of it."""

import hashlib

import cv2
import mujoco
import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import ARM_STATUS, BODIES, EPISODE_EVENT, TOPICS, body_topic
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter
from bid_ros.robots.ur.twin.model import HOME_Q
from bid_ros.system.folder import find_system
from bid_ros.tasks.registry import kind_of
from bid_ros.tasks.twins import picture_model, scene_model
from bid_ros.views.studio_video import ScenePose, write_studio

SYSTEMS = ("franka_place", "ur5_pick")
# What a policy's images show: shapes, places, colours and light. They were so when the shipped policies were trained.
PLAIN = {"franka_place": "fb4b3f4286c8175f", "ur5_pick": "54fb98f2e301bda8"}
SHOWN = (
    *("geom_type", "geom_size", "geom_pos", "geom_quat", "geom_rgba", "geom_group", "geom_matid"),
    *("cam_pos", "cam_quat", "cam_fovy", "light_pos", "light_dir", "light_diffuse", "light_castshadow"),
    *("body_pos", "body_quat", "jnt_pos", "jnt_axis"),
)
SECOND = 1_000_000_000


@pytest.fixture(params=SYSTEMS)
def system(request):
    return find_system(request.param)


def test_the_scene_of_a_policy_s_images_is_as_it_was(system):
    model = scene_model(system.task)
    digest = hashlib.sha256()
    for name in SHOWN:
        digest.update(np.round(np.asarray(getattr(model, name), np.float64), 6).tobytes())
    visual = model.vis
    light = [*visual.headlight.ambient, *visual.headlight.diffuse, *visual.headlight.specular]
    how = [visual.map.znear, visual.map.zfar, visual.quality.offsamples, visual.quality.numslices]
    how += [visual.quality.numstacks, model.stat.extent, *model.stat.center]
    digest.update(np.round([*light, *how], 6).tobytes())
    assert digest.hexdigest()[:16] == PLAIN[system.task.name]
    assert not model.nmesh and not model.ntex


def test_a_picture_s_scene_takes_the_twin_s_states(system):
    plain, picture = scene_model(system.task), picture_model(system.task)
    joints = [[model.joint(number).name for number in range(model.njnt)] for model in (plain, picture)]
    assert joints[0] == joints[1]
    bodies = [[model.body(name).mocapid[0] for name in kind_of(system.task).bodies] for model in (plain, picture)]
    assert bodies[0] == bodies[1]
    for index in range(plain.nbody):
        body = plain.body(index)
        np.testing.assert_allclose(picture.body(body.name).pos, body.pos, atol=1e-9, err_msg=body.name)
        np.testing.assert_allclose(picture.body(body.name).quat, body.quat, atol=1e-9, err_msg=body.name)


def test_arm_gripper_and_bodies_are_where_they_are_told_to_be(system):
    model = picture_model(system.task)
    pose, data = ScenePose(model), mujoco.MjData(model)
    angles = np.linspace(-0.5, 0.5, 7 if system.task.robot == "franka" else 6)
    pose.set_arm(angles, 0.05)
    for number, name in enumerate(kind_of(system.task).bodies):
        pose.set_body(name, (0.5, 0.1 * number, 0.2), (0.0, 1.0, 0.0, 0.0))
    data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = pose.qpos, pose.mocap_pos, pose.mocap_quat
    mujoco.mj_kinematics(model, data)
    for number, name in enumerate(kind_of(system.task).bodies):
        np.testing.assert_allclose(data.body(name).xpos, (0.5, 0.1 * number, 0.2), atol=1e-9)
        np.testing.assert_allclose(data.body(name).xquat, (0.0, 1.0, 0.0, 0.0), atol=1e-9)
    np.testing.assert_allclose(data.qpos[: len(angles)], angles)
    assert np.isclose(data.qpos[len(angles) : len(angles) + 2].sum(), 0.05)
    with pytest.raises(RecordingError, match="the arm status has 0 joints"):
        pose.set_arm([], 0.05)


def bag_of_a_ur(path, cup_y: float):
    """A recording of 2 s in which the cup stands at y = ``cup_y`` m."""
    with BagWriter(path) as writer:
        for topic in (ARM_STATUS, EPISODE_EVENT, body_topic("cup"), body_topic("saucer")):
            writer.add_topic(f"/{topic}", find_definition(TOPICS.get(topic, BODIES).type_name))

        def write(topic, message, at_ns):
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(at_ns, SECOND)
            writer.write(f"/{topic}", at_ns, serialize_message(message))

        write(EPISODE_EVENT, EpisodeEvent(kind=EpisodeEvent.START), SECOND)
        for at_ns in range(SECOND, 3 * SECOND, SECOND // 5):
            for name, y in (("cup", cup_y), ("saucer", 0.15)):
                body = PoseStamped()
                body.pose.position.x, body.pose.position.y, body.pose.orientation.w = 0.55, y, 1.0
                write(body_topic(name), body, at_ns)
            write(ARM_STATUS, ArmStatus(joint_positions=list(HOME_Q), gripper_width=0.08), at_ns)
    return path


def test_a_recording_becomes_a_picture_with_a_shaded_robot_and_its_cup(tmp_path):
    task, pictures = find_system("ur5_pick").task, []
    for cup_y in (0.0, -0.15):
        out = write_studio(bag_of_a_ur(tmp_path / f"bag{cup_y}", cup_y), tmp_path / "shot.png", task, "480p", 1.0)
        pictures.append(cv2.imread(str(out)).astype(int)[:, :, ::-1])
    red = [np.argwhere((image[..., 0] > 120) & (image[..., 1] < 90) & (image[..., 2] < 70)) for image in pictures]
    assert pictures[0].shape == (480, 854, 3)
    assert min(map(len, red)) > 200
    assert red[1].mean(axis=0)[1] < red[0].mean(axis=0)[1] - 10, "the camera stands to the right: -y is nearer, left"
    assert np.ptp(pictures[0].sum(axis=2)) > 500, "light and shadow"
    late = write_studio(tmp_path / "bag0.0", tmp_path / "late.png", task, "480p", 60.0)
    assert late is None, "the recording is shorter"
