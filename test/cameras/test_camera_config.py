import pytest

from bid_ros.cameras import CameraConfig, load_cameras, open_camera
from bid_ros.cameras.realsense import RealSenseCamera
from bid_ros.cameras.uvc import UvcCamera
from bid_ros.errors import CameraError

NAMES = ["third_person", "wrist"]
GOOD = """
third_person: {source: uvc, address: 0, crop: [80, 0, 480, 480]}
wrist: {source: realsense, address: "123622270732", crop: null}
"""


def load(tmp_path, text):
    path = tmp_path / "cameras.yaml"
    path.write_text(text)
    return load_cameras(path, NAMES)


def test_reads_every_camera_of_the_task(tmp_path):
    cameras = load(tmp_path, GOOD)
    assert list(cameras) == NAMES
    assert cameras["third_person"] == CameraConfig("third_person", "uvc", "0", (80, 0, 480, 480))
    assert cameras["wrist"].crop is None
    assert isinstance(open_camera(cameras["third_person"]), UvcCamera)
    assert isinstance(open_camera(cameras["wrist"]), RealSenseCamera)


@pytest.mark.parametrize("name", ["franka_place_cameras.yaml", "franka_place_cameras_twin.yaml"])
def test_the_shipped_files_are_valid(name, pytestconfig):
    assert set(load_cameras(pytestconfig.rootpath / "config" / name, NAMES)) == set(NAMES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wrist: {source: twin}", "the task's cameras are third_person, wrist"),
        (GOOD + "left: {source: twin}", "the task's cameras are"),
        ("- 1", "the task's cameras are"),
        ("{", "is not valid YAML"),
        (GOOD.replace("uvc", "gige"), "source 'gige'; valid are twin, topic, uvc, realsense"),
        (GOOD.replace("address: 0", 'address: ""'), "camera 'third_person' has no address"),
        (GOOD.replace("crop: null", "zoom: 2"), "valid fields are source, address, crop, position"),
        (GOOD.replace("[80, 0, 480, 480]", "[80, 0, 480]"), r"crop \(80, 0, 480\); valid is"),
        (GOOD.replace("[80, 0, 480, 480]", "[80, 0, 0, 480]"), "valid is .left, top, width, height."),
        (GOOD.replace("crop: null", "position: [1, 0, 1]"), "camera 'wrist' has half a calibration"),
        (GOOD.replace("crop: null", "position: [1, 0], quaternion: [0, 0, 0, 1]"), "calibration of a wrong size"),
        (GOOD.replace("[80, 0, 480, 480]", "wide"), "'third_person' has a value of the wrong type"),
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


def test_a_topic_is_no_device():
    with pytest.raises(CameraError, match="is no device to open"):
        open_camera(CameraConfig("wrist", "topic", "/image"))
