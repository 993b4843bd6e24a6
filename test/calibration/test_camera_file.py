"""Fields of a camera are written into its file, and every other word stays."""

import shutil

import pytest

from bid_ros.calibration.camera_file import edited, write_camera
from bid_ros.cameras.config import load_cameras
from bid_ros.core.errors import BidError, CalibrationError
from bid_ros.core.settings import load_yaml
from bid_ros.system.folder import find_system

TEXT = """# all cameras
third:   # the one at the wall
  source: realsense
  address: "123"          # serial
  position: [1.0, 2.0, 3.0]   # m
  crop:
    - 0   # left
    - 0
    - 10
    - 10
  # about the twin
  twin:
    source: twin
    fovy: 27.0
# the other one
wrist: {source: realsense, address: "124", twin: {source: twin, fovy: 75.0}}   # at the wrist
"""
POSE = {"position": [0.1, -0.2, 3.5], "quaternion": [0.0, 0.0, 0.0, 1.0]}


def words(text: str) -> set[str]:
    return {line.split("#", 1)[1].strip() for line in text.splitlines() if "#" in line}


@pytest.mark.parametrize("camera", ["third", "wrist"])
@pytest.mark.parametrize("twin", [False, True])
def test_only_the_fields_change_and_no_comment_is_lost(camera, twin):
    new = edited(TEXT, camera, POSE, twin)
    wanted, found = load_yaml(TEXT), load_yaml(new)
    (wanted[camera]["twin"] if twin else wanted[camera]).update(POSE)
    assert found == wanted
    assert words(new) == words(TEXT)
    other = "wrist:" if camera == "third" else "  address"
    assert all(line in new.splitlines() for line in TEXT.splitlines() if line.startswith(other))
    again = edited(new, camera, POSE, twin)
    assert edited(again, camera, POSE, twin) == again and load_yaml(again) == wanted


def test_a_list_over_several_lines_is_replaced():
    assert load_yaml(edited(TEXT, "third", {"crop": [1, 2, 3, 4]}, False))["third"]["crop"] == [1, 2, 3, 4]


def test_a_camera_without_a_twin_gets_one():
    found = load_yaml(edited("left:\n  source: uvc\n  address: 1\n", "left", POSE, True))
    assert found["left"] == {"source": "uvc", "address": 1, "twin": {"source": "twin", **POSE}}


@pytest.mark.parametrize("text", ["a: {source: uvc}", "third: 3", "", "third: {twin: 3}"])
def test_what_cannot_be_edited_is_one_sentence(text):
    with pytest.raises(CalibrationError, match=r"cameras.yaml.*; (valid|write)"):
        edited(text, "third", POSE, True)


def test_the_file_is_written_whole_or_not_at_all(root, system):
    file = system.folder / "cameras.yaml"
    before = file.read_text()
    with pytest.raises(BidError, match="quaternion"):
        write_camera(system, "wrist", {**POSE, "quaternion": [0.0, 0.0, 0.0, 2.0]}, twin=True)
    assert file.read_text() == before
    assert write_camera(system, "third_person", POSE, twin=True)["position"] == [1.26, 0.37, 0.67]
    cameras = load_cameras(file, ["third_person", "wrist"], twin=True)
    assert cameras["third_person"].position == (0.1, -0.2, 3.5) and cameras["wrist"].position is None
    assert load_cameras(file, ["third_person", "wrist"])["third_person"].position is None
    assert {item.name for item in system.folder.iterdir()} == {
        item.name for item in (root / "config/franka_place").iterdir()
    }


def test_a_system_that_is_like_another_gets_a_file_of_its_own(root, tmp_path):
    shutil.copytree(root / "config", tmp_path / "config")
    system = find_system(tmp_path / "config" / "joints" / "franka_place")
    shared = tmp_path / "config" / "franka_place" / "cameras.yaml"
    before = shared.read_text()
    write_camera(system, "wrist", POSE, twin=True)
    assert shared.read_text() == before and (system.folder / "cameras.yaml").is_file()
