from dataclasses import replace

import pytest

from bid_ros.cameras.base import Capture, LockedLight
from bid_ros.cameras.config import CameraConfig, check_depths, has_sensor, load_cameras, open_camera
from bid_ros.cameras.realsense import RealSenseCamera
from bid_ros.cameras.uvc import UvcCamera
from bid_ros.core.errors import CameraError
from bid_ros.core.feature import Feature

NAMES = ["third_person", "wrist"]
GOOD = """
third_person: {source: uvc, address: 0, crop: [80, 0, 480, 480]}
wrist: {source: realsense, address: "123622270732", crop: null}
"""


def load(tmp_path, text):
    path = tmp_path / "cameras.yaml"
    path.write_text(text)
    return load_cameras(path, NAMES)


def test_distances_come_from_no_device():
    camera = CameraConfig("front", "uvc", "0")
    features = [Feature("front", "image", (4, 4, 1), depth=(0.1, 2.0))]
    with pytest.raises(CameraError, match="'front' of source 'uvc' is to measure distances; valid is source topic"):
        check_depths(features, {"front": camera})
    check_depths(features, {"front": replace(camera, source="topic", address="/depth")})


def test_a_file_that_is_not_there_is_said_before_anything_starts(tmp_path):
    (tmp_path / "table.mp4").touch()
    for source, address in (("uvc", "table.mp4"), ("uvc", "0"), ("uvc", "/dev/video7"), ("topic", "/cam")):
        CameraConfig("front", source, address).check_there(tmp_path)
    for source, address, valid in (
        ("uvc", "tabel.mp4", "a device number, a path under"),
        ("bag", "none:/cam", "a bag"),
    ):
        said = rf"camera '{tmp_path}/\w+(\.mp4)?' does not exist; valid is {valid}"
        with pytest.raises(CameraError, match=said):
            CameraConfig("front", source, address).check_there(tmp_path)


def test_reads_every_camera_of_the_task(tmp_path):
    cameras = load(tmp_path, GOOD)
    assert list(cameras) == NAMES
    assert cameras["third_person"] == CameraConfig("third_person", "uvc", "0", (80, 0, 480, 480))
    assert cameras["wrist"].crop is None
    assert isinstance(open_camera(cameras["third_person"], tmp_path), UvcCamera)
    assert isinstance(open_camera(cameras["wrist"], tmp_path), RealSenseCamera)


@pytest.mark.parametrize("name", ["franka_place", "ur5_pick"])
def test_the_shipped_files_say_what_is_on_the_robot_and_what_in_its_twin(name, root):
    file = root / "config" / name / "cameras.yaml"
    robot, twin = load_cameras(file, NAMES), load_cameras(file, NAMES, twin=True)
    assert {camera.source for camera in robot.values()} == {"topic"}
    assert {camera.source for camera in twin.values()} == {"twin"}
    assert robot["third_person"].position is None and twin["third_person"].position is not None


def test_a_camera_that_says_nothing_of_the_twin_is_rendered_there(tmp_path):
    file = tmp_path / "cameras.yaml"
    file.write_text(GOOD)
    assert {camera.source for camera in load_cameras(file, NAMES, twin=True).values()} == {"twin"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "wrist: {source: twin}",
            "camera 'third_person' that the task observes is missing; the task's cameras are third_person, wrist",
        ),
        (GOOD + "left: {source: twin}", "camera 'left' the task does not observe"),
        ("- 1", "is .1.; valid is a mapping of the task's cameras"),
        ("", "camera 'third_person' that the task observes is missing"),
        ("{", "is not valid YAML"),
        (GOOD.replace("uvc", "gige"), "'third_person' has source 'gige'; valid are twin, topic, bag, realsense, uvc"),
        (GOOD.replace("address: 0", 'address: ""'), "camera 'third_person' has no address"),
        (
            GOOD.replace('realsense, address: "123622270732"', "topic, address: /image raw"),
            "camera 'wrist' has the topic '/image raw'; valid is a ROS name of up to 144 letters",
        ),
        (
            GOOD.replace("crop: null", "zoom: 2"),
            "wrist: unknown field 'zoom'; valid are source, address, crop, position",
        ),
        (
            GOOD.replace("[80, 0, 480, 480]", "[80, 0, 480]"),
            r"crop is \[80, 0, 480\]; valid is a list of 4 whole numbers",
        ),
        (GOOD.replace("[80, 0, 480, 480]", "[80, 0, 0, 480]"), "valid is .left, top, width, height."),
        (GOOD.replace("crop: null", "position: [1, 0, 1]"), "camera 'wrist' has half a calibration"),
        (
            GOOD.replace("crop: null", "position: [1, 0], quaternion: [0, 0, 0, 1]"),
            "position is .1, 0.; valid is a list of 3 numbers",
        ),
        (GOOD.replace("address: 0", "address: 0, twin: {sourec: twin}"), "third_person: unknown field 'sourec'"),
        (GOOD.replace("crop: null", "name: left"), "wrist: unknown field 'name'; valid are source"),
        (GOOD.replace("crop: null", "fovy: 180"), "wrist: fovy is 180; valid is a number from 4 to 179"),
        (GOOD.replace("crop: null", "fovy: 0.73"), "wrist: fovy is 0.73; valid is a number from 4 to 179"),
        (
            GOOD.replace("crop: null", "position: [500, 0, 800], quaternion: [1, 0, 0, 0]"),
            r"position\[0\] is 500; valid is a number from -10 to 10",
        ),
        (GOOD.replace("[80, 0, 480, 480]", "wide"), "third_person: crop is 'wide'; valid is a list of 4 whole numbers"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, text, words):
    with pytest.raises(CameraError, match=words) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_calibrated_camera_has_a_model(tmp_path):
    cameras = load(tmp_path, GOOD.replace("crop: null", "position: [1, 0, 1], quaternion: [1, 0, 0, 0], fovy: 45"))
    model = cameras["wrist"].model(96, 96)
    pixels, depth = model.project([1.0, 0.0, 0.0])
    assert pixels.tolist() == [48.0, 48.0]
    assert depth == 1.0
    assert cameras["third_person"].model(96, 96) is None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CameraError, match=r"none\.yaml does not exist"):
        load_cameras(tmp_path / "none.yaml", NAMES)


def test_a_topic_is_no_device(tmp_path):
    with pytest.raises(CameraError, match="is no device to open"):
        open_camera(CameraConfig("wrist", "topic", "/image"), tmp_path)


@pytest.mark.parametrize(
    ("source", "address", "sensor"),
    [
        ("realsense", "0123", True),
        ("uvc", "0", True),
        ("uvc", "/dev/video2", True),
        ("uvc", "film.mp4", False),
        ("topic", "wrist/color/image_raw", False),
        ("bag", "bag:/camera/wrist/image", False),
        ("twin", "", False),
    ],
)
def test_only_a_device_surely_has_a_sensor_whose_noise_no_two_images_share(source, address, sensor):
    assert has_sensor(CameraConfig("wrist", source, address)) is sensor


def test_two_cameras_of_one_serial_number_are_refused(tmp_path):
    text = GOOD.replace(
        "source: uvc, address: 0, crop: [80, 0, 480, 480]", 'source: realsense, address: "123622270732"'
    )
    with pytest.raises(
        CameraError, match="'third_person' and 'wrist' are both realsense 123622270732; valid is another"
    ):
        load(tmp_path, text)


CALIBRATED = """
  frame: tool
  position: [0.1, 0.0, -0.05]
  quaternion: [0.0, 0.0, 0.0, 1.0]
  calibration: {date: 2026-03-14T15:09:26+00:00, images: 15, error_px: 0.9, error_mm: 0.5, error_deg: 0.05,
    board_position: [0.4, 0.0, 0.0], board_quaternion: [1.0, 0.0, 0.0, 0.0]}
"""


@pytest.mark.parametrize(("moved", "refused"), [("2026-03-13", False), ("2026-03-16", True), ("'yesterday'", None)])
def test_a_calibration_older_than_the_last_move_is_refused(tmp_path, moved, refused):
    text = (
        f"third_person: {{source: uvc, address: 0}}\nwrist:\n  source: uvc\n  address: 1\n  moved: {moved}{CALIBRATED}"
    )
    if refused is None:
        with pytest.raises(CameraError, match="moved is 'yesterday'; valid is a date as 2026-03-14"):
            load(tmp_path, text)
        return
    wrist = load(tmp_path, text)["wrist"]
    assert wrist.model(96, 96) is None, "it is drawn over by nobody: it moves with the tool"
    if not refused:
        wrist.check_not_moved()
        return
    with pytest.raises(CameraError, match=r"older than the camera's last move, 2026-03-16; .* bid calibrate hand-eye"):
        wrist.check_not_moved()


def test_one_device_by_two_names_is_refused(tmp_path):
    text = "third_person: {source: uvc, address: 97}\nwrist: {source: uvc, address: /dev/video97}"
    with pytest.raises(CameraError, match="'third_person' and 'wrist' are both uvc /dev/video97; valid is another"):
        load(tmp_path, text)


ASKED = "size: [1280, 720], rate_hz: 15, locked: {serial: '1', gain: 3}"


def test_what_a_device_is_asked_for_is_not_for_the_twin(tmp_path):
    text = GOOD.replace("crop: null", ASKED)
    assert load(tmp_path, text)["wrist"].capture == Capture((1280, 720), 15, LockedLight("1", gain=3))
    twin = load_cameras(tmp_path / "cameras.yaml", NAMES, twin=True)["wrist"]
    assert twin.source == "twin" and twin.capture == Capture()


@pytest.mark.parametrize(
    ("camera", "words"),
    [
        ("source: topic, address: /image", "'wrist' has size, rate_hz or locked; valid with a device, not with topic"),
        ("source: bag, address: 'a:/image'", "'wrist' of source 'bag' has size, rate_hz or locked; valid is none"),
        ("source: uvc, address: film.mp4", "is a video file; valid are size, rate_hz and locked of a device"),
    ],
)
def test_what_is_no_device_is_asked_for_nothing(tmp_path, camera, words):
    text = f"third_person: {{source: uvc, address: 0}}\nwrist: {{{camera}, {ASKED}}}"
    with pytest.raises(CameraError, match=words):
        open_camera(load(tmp_path, text)["wrist"], tmp_path)
