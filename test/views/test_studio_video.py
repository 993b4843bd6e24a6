"""Shaded pictures of a run: the robot as it looks, where the bag says it was. A policy's images have nothing of it."""

import hashlib
from types import SimpleNamespace

import cv2
import mujoco
import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.errors import BidError, RecordingError
from bid_ros.core.topics import ARM_STATUS, BODIES, EPISODE_EVENT, TOPICS, body_topic
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter
from bid_ros.robots.ur.twin.model import HOME_Q
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.studio import CAMERA
from bid_ros.system.folder import find_system
from bid_ros.tasks.registry import kind_of
from bid_ros.tasks.twins import picture_model, scene_model
from bid_ros.views.message_values import FIELDS
from bid_ros.views.outline import ScenePose
from bid_ros.views.overlay import SELECTED, ToolPlaces
from bid_ros.views.studio_video import RUN, Moment, StudioEye, StudioPainter, write_studio

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
    assert not model.nmesh and not model.nmat
    # A sky, which is drawn in pictures for a person alone (test_renderer.py).
    assert list(model.tex_type) == [mujoco.mjtTexture.mjTEXTURE_SKYBOX]


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
        bag = bag_of_a_ur(tmp_path / f"bag{cup_y}", cup_y)
        out = write_studio(bag, tmp_path / "shot.png", task, ToolPlaces(task), "480p", 1.0)
        pictures.append(cv2.imread(str(out)).astype(int)[:, :, ::-1])
    red = [np.argwhere((image[..., 0] > 120) & (image[..., 1] < 90) & (image[..., 2] < 70)) for image in pictures]
    assert pictures[0].shape == (480, 854, 3)
    assert min(map(len, red)) > 200
    assert red[1].mean(axis=0)[1] < red[0].mean(axis=0)[1] - 10, "the camera stands to the right: -y is nearer, left"
    assert np.ptp(pictures[0].sum(axis=2)) > 500, "light and shadow"
    late = write_studio(tmp_path / "bag0.0", tmp_path / "late.png", task, ToolPlaces(task), "480p", 60.0)
    assert late is None, "the recording is shorter"
    with pytest.raises(BidError, match=r"run.jpg; valid is a name that ends with .gif"):
        write_studio(tmp_path / "bag0.0", tmp_path / "run.jpg", task, ToolPlaces(task))


@pytest.fixture(scope="module")
def ur():
    """The task of the UR, its scene for pictures, and a state of it with the cup at x = 0.55 m, y = 0."""
    task = find_system("ur5_pick").task
    model = picture_model(task)
    pose = ScenePose(model)
    pose.set_arm(HOME_Q, 0.08)
    pose.set_body("cup", (0.55, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    return task, model, (pose.qpos, pose.mocap_pos, pose.mocap_quat)


def decided(task, start, end):
    """A decision for a straight way of the tool, without candidates."""
    rows = np.zeros((task.horizon, task.action_dim), np.float32)
    rows[:, task.columns("position")] = np.linspace(start, end, task.horizon)
    counts = dict.fromkeys(("samples", "weak_samples", "previous_steps", "current_step"), 0)
    empty = dict.fromkeys(("strong", "weak", "previous", "kept", "total"), ())
    size = {"steps": task.horizon, "dims": task.action_dim}
    times = dict.fromkeys(FIELDS.values(), 0.02)
    return SimpleNamespace(**counts, **empty, **size, **times, selected=rows.ravel(), decoder="bid")


def yellow(picture):
    """Where (row, column) the colour of the selected chunk is, above the legend."""
    above = picture[: int(0.8 * len(picture))].astype(int)
    return np.argwhere(np.abs(above - SELECTED).max(axis=2) < 40)


def test_a_decision_is_drawn_in_space_where_nothing_hides_it(ur):
    task, model, state = ur
    painter = StudioPainter(model, ToolPlaces(task), "480p")
    eye = StudioEye(model, 854, 480)
    try:
        start, end = (0.62, 0.0, 0.2), (0.77, 0.0, 0.2)
        seen = yellow(painter.paint(Moment(state, decided(task, start, end), "episode 1")))
        under = yellow(painter.paint(Moment(state, decided(task, (0.62, 0.0, -0.1), (0.77, 0.0, -0.1)), "")))
    finally:
        painter.close()
    assert len(seen) > 50 and not len(under), "the table hides what is under it"
    pixels, depth = eye.project([start, end])
    assert np.abs(np.sort(pixels[:, 0]) - [seen[:, 1].min(), seen[:, 1].max()]).max() < 8
    assert (depth > 1.0).all()


def test_the_picture_s_camera_is_where_its_model_says(ur):
    _, model, state = ur
    renderer = SceneRenderer(model, 854, 480, [CAMERA], shaded=True)
    try:
        image, depths = renderer.render_with_depths(*state)[CAMERA]
    finally:
        renderer.close()
    image = image.astype(int)
    cup = np.argwhere((image[..., 0] > 120) & (image[..., 1] < 90) & (image[..., 2] < 70))
    eye = StudioEye(model, 854, 480)
    pixels, depth = eye.project((0.55, 0.0, 0.04))
    assert np.abs(cup.mean(axis=0)[::-1] - pixels).max() < 12
    assert depths[tuple(cup[len(cup) // 2])] == pytest.approx(depth, abs=0.06)
    eye.depths = depths
    assert np.isfinite(eye.project((0.55, 0.0, 0.3))[0]).all()
    assert np.isnan(eye.project((0.55, 0.0, -0.1))[0]).all()


def test_a_run_is_shown_beside_what_its_policy_sees(ur):
    task, model, state = ur
    green = np.zeros((96, 96, 3), np.uint8)
    green[..., 1] = 200
    message = SimpleNamespace(height=96, width=96, step=288, encoding="rgb8", is_bigendian=0, data=green.tobytes())
    painter = StudioPainter(model, ToolPlaces(task), RUN)
    try:
        picture = painter.paint(Moment(state, None, "episode 1", (message, message)))
    finally:
        painter.close()
    assert picture.shape == (328, 618, 3)
    beside = picture[:270, 486:]
    assert (beside[:132] == (0, 200, 0)).all() and (beside[138:] == (0, 200, 0)).all()
    assert np.ptp(picture[:270, :480].sum(axis=2)) > 300 and np.ptp(picture[270:].sum(axis=2)) > 300
