"""The pieces of scenes, as MuJoCo itself reads them."""

import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest

from bid_ros.sim.mjcf import HAND_BITS, NO_BITS, OBJECT_BITS, WORLD_BITS, geom, lamp, look, part, plain_visuals, text


def scene(*cameras):
    root = ET.fromstring("<mujoco><worldbody/></mujoco>")
    plain_visuals(root, (0.4, 0.0, 0.2))
    world = part(root, "worldbody")
    lamp(world, (0, 0, 2), (0, 0, -1))
    for name, position, target in cameras:
        ET.SubElement(world, "camera", name=name, pos=text(position), xyaxes=look(position, target))
    return root, world


def compiled(root):
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize(
    ("position", "target"), [((1.0, 0.5, 0.8), (0.4, 0.0, 0.1)), ((-0.3, 0.2, 0.1), (0.4, -0.1, 0.6))]
)
def test_a_camera_looks_at_its_target_and_stands_upright(position, target):
    _, data = compiled(scene(("eye", position, target))[0])
    right, up, back = data.camera("eye").xmat.reshape(3, 3).T
    way = np.subtract(target, position)
    np.testing.assert_allclose(-back, way / np.linalg.norm(way), atol=1e-6)
    assert right[2] == pytest.approx(0.0, abs=1e-6) and up[2] > 0.0


def test_a_scene_is_cheap_to_render():
    model, _ = compiled(scene()[0])
    assert (model.vis.quality.shadowsize, model.vis.quality.offsamples) == (0, 0)
    assert model.nlight == 1 and not model.light_castshadow.any()
    np.testing.assert_allclose(model.stat.center, (0.4, 0.0, 0.2))


@pytest.mark.parametrize(
    ("one", "other", "touch"),
    [
        (HAND_BITS, OBJECT_BITS, True),
        (HAND_BITS, WORLD_BITS, True),
        (OBJECT_BITS, WORLD_BITS, True),
        (OBJECT_BITS, OBJECT_BITS, False),
        (HAND_BITS, HAND_BITS, False),
        (NO_BITS, WORLD_BITS, False),
        (NO_BITS, OBJECT_BITS, False),
    ],
)
def test_what_touches_what(one, other, touch):
    root, world = scene()
    for name, bits, height in (("one", one, "0"), ("other", other, "0.05")):
        body = ET.SubElement(world, "body", name=name, pos=f"0 0 {height}")
        ET.SubElement(body, "freejoint")
        geom(body, "box", size="0.05 0.05 0.05", **bits)
    assert bool(compiled(root)[1].ncon) is touch
