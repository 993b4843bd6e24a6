"""The collision shapes of a URDF: where they are, at any joints, and what cannot be read."""

import numpy as np
import pinocchio
import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ros.twin.description import BASE, TOOL, arm_urdf
from bid_ros.robots.ros.urdf import has_shapes, link_shapes, read_chain, serial_chain

TETRAHEDRON = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]
BOX = '<collision><origin xyz="0.05 0 0.1"/><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
MESH = '<collision><geometry><mesh filename="{}"/></geometry></collision>'
TUBE = (
    '<collision><origin xyz="-0.2 0 0" rpy="0 1.5707963 0"/>'
    '<geometry><cylinder radius="0.05" length="0.4"/></geometry></collision>'
)


def stl(path):
    """Write a tetrahedron."""
    faces = [[point for point in TETRAHEDRON if point != left] for left in TETRAHEDRON]
    lines = ["solid x"]
    for face in faces:
        lines += [
            "facet normal 0 0 1",
            "outer loop",
            *(f"vertex {x} {y} {z}" for x, y, z in face),
            "endloop",
            "endfacet",
        ]
    path.write_text("\n".join([*lines, "endsolid x"]))
    return path


def urdf(**shapes):
    """Return the twin's URDF with collision shapes by link, and with the elbow's axis turned away from z."""
    text = arm_urdf()
    for link, shape in shapes.items():
        text = text.replace(f'<link name="{link}" />', f'<link name="{link}">{shape}</link>')
    return text


def test_shapes_lie_in_the_frames_of_the_serial_chain(tmp_path):
    text = urdf(base_link=BOX + MESH.format(stl(tmp_path / "m.stl")), forearm_link=TUBE)
    before, axis = text.partition('name="elbow_joint"')[::2]
    text = before + 'name="elbow_joint"' + axis.replace('xyz="0 0 1"', 'xyz="0 0.6 0.8"', 1)
    chain = read_chain(text, BASE, TOOL, "x")
    box, hull, tube = link_shapes(chain)
    assert [shape.joint for shape in (box, hull, tube)] == [0, 0, 3]
    np.testing.assert_allclose(box.position, [0.05, 0.0, 0.1])
    np.testing.assert_allclose(2 * box.geometry.halfSide, [0.1, 0.2, 0.3])
    hull.geometry.computeLocalAABB()
    np.testing.assert_allclose(hull.geometry.aabb_local.max_, [0.1, 0.1, 0.1], atol=1e-6)
    frames = serial_chain(chain).frames
    place = np.eye(4)
    for frame in frames[:3]:  # at joints of 0 rad
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = frame.rotation, frame.position
        place = place @ step
    own = chain.model.createData()

    pinocchio.forwardKinematics(chain.model, own, np.zeros(6))
    wanted = own.oMi[3] * pinocchio.SE3(np.eye(3), np.array([-0.2, 0.0, 0.0]))
    np.testing.assert_allclose(place[:3, :3] @ tube.position + place[:3, 3], wanted.translation, atol=1e-9)
    axis = place[:3, :3] @ tube.rotation[:, 2]
    np.testing.assert_allclose(np.abs(axis @ (own.oMi[3].rotation @ [1.0, 0.0, 0.0])), 1.0, atol=1e-6)


def test_a_chain_without_shapes_says_so():
    assert not has_shapes(read_chain(arm_urdf(), BASE, TOOL, "x"))
    assert has_shapes(read_chain(urdf(base_link=BOX), BASE, TOOL, "x"))


def test_a_mesh_that_is_missing_is_one_sentence(tmp_path):
    chain = read_chain(urdf(base_link=MESH.format(tmp_path / "no.stl")), BASE, TOOL, "x")
    with pytest.raises(ArmError, match=r"a collision shape of the URDF: Could not load .*no\.stl; valid is a file"):
        link_shapes(chain)
