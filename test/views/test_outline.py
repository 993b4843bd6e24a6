"""The outline of a robot: whole, where the robot is, and in files that others read."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.franka.model import HOME_Q as FRANKA_Q
from bid_ros.robots.ur.twin.model import HOME_Q as UR_Q
from bid_ros.system.folder import find_system
from bid_ros.views.outline import hull, outline_of, round_body, write_stl, write_urdf

HOMES = {"franka_place": (FRANKA_Q, "hand", (0.45, 0.0, 0.4234)), "ur5_pick": (UR_Q, "tool0", (0.48, -0.05, 0.45))}


@pytest.fixture(scope="module", params=HOMES)
def robot(request):
    return request.param, outline_of(find_system(request.param).task)


def placed(outline, joints, width=0.04):
    """Return the pose of each link in the base frame."""
    found = {"": (np.zeros(3), np.eye(3))}
    for pose in outline.poses(joints, width):
        place, turn = found[pose.parent]
        own = matrix_from_quaternion(pose.quaternion)
        found[pose.link] = place + turn @ pose.position, turn @ own
    return found


def test_the_links_are_where_the_kinematics_of_the_robot_put_the_tool(robot):
    system, outline = robot
    joints, last, near = HOMES[system]
    place, turn = placed(outline, joints)[last]
    assert np.linalg.norm(place[:2] - near[:2]) < 0.002, "over the tool, which points straight down"
    np.testing.assert_allclose(turn[:, 2], [0, 0, -1], atol=1e-6)
    assert not {"cup", "object", "saucer", "world"} & set(outline.links), "the robot alone"


def test_the_fingers_open_as_far_as_the_gripper(robot):
    _, outline = robot
    joints = HOMES[robot[0]][0]
    apart = [
        np.linalg.norm(
            np.subtract(*(placed(outline, joints, width)[f"{side}_finger"][0] for side in ("left", "right")))
        )
        for width in (0.0, 0.06)
    ]
    assert apart[1] - apart[0] == pytest.approx(0.06, abs=1e-6)


def test_the_surfaces_are_those_of_an_arm_and_face_outwards(robot):
    system, outline = robot
    joints = HOMES[system][0]
    where, points = placed(outline, joints), []
    for shell in outline.shells():
        assert shell.faces.min() >= 0 and shell.faces.max() < len(shell.vertices) and shell.colour[3] > 0
        place, turn = where[shell.link]
        points.append(shell.vertices @ turn.T + place)
    every = np.concatenate(points)
    assert (every.min(axis=0) > [-0.5, -0.5, -0.05]).all() and (every.max(axis=0) < [0.7, 0.5, 1.1]).all()
    assert every[:, 2].min() < 0.02 and np.ptp(every[:, 0]) > 0.4, "from its foot to its tool"


def test_the_description_names_files_and_a_tree_of_all_links(robot, tmp_path):
    _, outline = robot
    description = ET.fromstring(write_urdf(outline, tmp_path, "left/outline/"))
    links = [link.get("name") for link in description.findall("link")]
    assert links == [f"left/outline/{name}" for name in outline.links]
    children = [joint.find("child").get("link") for joint in description.findall("joint")]
    assert sorted(children) == sorted(links[1:])
    files = [mesh.get("filename").removeprefix("file://") for mesh in description.iter("mesh")]
    assert len(files) == len(set(files)) == len(list(tmp_path.glob("*.stl"))) == len(list(outline.shells()))


def test_a_file_holds_each_face_with_its_normal(robot, tmp_path):
    shell = next(robot[1].shells())
    write_stl(shell, tmp_path / "one.stl")
    data = (tmp_path / "one.stl").read_bytes()
    rows = np.frombuffer(data[84:], dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    assert int.from_bytes(data[80:84], "little") == len(rows) == len(shell.faces)
    np.testing.assert_array_equal(rows["corners"], shell.vertices[shell.faces])


def test_other_joints_are_refused(robot):
    with pytest.raises(RecordingError, match=r"the arm status has 3 joints; valid are [67]"):
        robot[1].poses([0.0, 0.0, 0.0], 0.04)


@pytest.mark.parametrize(("capped", "volume"), [(False, np.pi * 0.01 * 0.4), (True, np.pi * 0.01 * (0.4 + 4 / 30))])
def test_round_bodies_are_closed_and_face_outwards(capped, volume):
    vertices, faces = round_body(0.1, 0.2, capped)
    corners = vertices[faces]
    found = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
    assert found == pytest.approx(volume, rel=0.06)
    cube, sides = hull(np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float))
    corners = cube[sides]
    assert np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6 == pytest.approx(1)
