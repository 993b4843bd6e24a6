"""A scene as a photographer would light it, for pictures and videos that nobody waits for.

The small images of a policy are rendered from the plain scene of the twin (:func:`bid_ros.sim.mjcf.plain_visuals`),
and never from this one.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final

from bid_ros.sim.mjcf import NO_BITS, add_sky, geom, look, part, text

CAMERA: Final = "studio"
LARGEST: Final = 1920  # px, of a picture's longer side
FOVY: Final = 30.0  # degrees, vertical field of view
FLOOR_Z: Final = -0.75  # m; the table's top is 0

_TILES: Final = {"rgb1": "0.78 0.80 0.82", "rgb2": "0.72 0.74 0.77", "markrgb": "0.65 0.67 0.70"}


def furnish_studio(scene: ET.Element, eye: Sequence[float], target: Sequence[float]) -> None:
    """Add light with shadows, a floor under the table, a sky and a camera to a scene with its robot and its task.

    Args:
        scene: the ``mujoco`` element, without a ``visual`` part.
        eye, target: ``(3,)`` m, where the camera stands and what it looks at, world frame.
    """
    visual = ET.SubElement(scene, "visual")
    ET.SubElement(visual, "headlight", ambient="0.32 0.32 0.33", diffuse="0.18 0.18 0.18", specular="0 0 0")
    ET.SubElement(visual, "quality", shadowsize="2048", offsamples="4", numslices="48", numstacks="24")
    ET.SubElement(visual, "global", offwidth=str(LARGEST), offheight=str(LARGEST))
    ET.SubElement(visual, "map", znear="0.02", zfar="12", shadowclip="1.2", shadowscale="0.7")
    ET.SubElement(scene, "statistic", extent="1.6", center=text(target))
    add_sky(scene)
    asset = part(scene, "asset")
    tiles = {"type": "2d", "builtin": "checker", "mark": "edge", "width": "512", "height": "512", **_TILES}
    floor = {"texture": "tiles", "texrepeat": "1 1", "texuniform": "true", "specular": "0.2", "shininess": "0.3"}
    ET.SubElement(asset, "texture", tiles, name="tiles")
    ET.SubElement(asset, "material", floor, name="floor")
    ET.SubElement(asset, "material", name="oak", rgba="0.72 0.60 0.46 1", specular="0.25", shininess="0.4")
    worldbody = part(scene, "worldbody")
    for old in worldbody.findall("light"):
        worldbody.remove(old)
    _set_table(worldbody)
    geom(worldbody, "plane", size="6 6 0.1", pos=f"0 0 {FLOOR_Z}", material="floor", **NO_BITS)
    for name, position, strength, shadow in (
        ("key", (1.4, -1.3, 2.4), 0.62, "true"),
        ("fill", (1.0, 1.8, 1.6), 0.22, "false"),
    ):
        direction = text([goal - start for goal, start in zip(target, position, strict=True)])
        shine = {"diffuse": text([strength] * 3), "specular": text([0.35 * strength] * 3), "castshadow": shadow}
        ET.SubElement(worldbody, "light", shine, name=name, pos=text(position), dir=direction, directional="true")
    lens = {"name": CAMERA, "mode": "fixed", "fovy": str(FOVY)}
    ET.SubElement(worldbody, "camera", lens, pos=text(eye), xyaxes=look(eye, target))


def _set_table(worldbody: ET.Element) -> None:
    """Give the task's table legs and wood; one that is an endless plane becomes a table."""
    table = worldbody.find("geom[@name='table']")
    if table is None:
        return
    for name in ("rgba", "size", "pos"):
        table.attrib.pop(name, None)
    table.attrib.update(type="box", size="0.62 0.7 0.02", pos="0.32 0 -0.02", material="oak")
    height = (-FLOOR_Z - 0.04) / 2
    for x, y in ((-0.25, -0.65), (-0.25, 0.65), (0.89, -0.65), (0.89, 0.65)):
        geom(
            worldbody,
            "box",
            size=f"0.025 0.025 {height}",
            pos=f"{x} {y} {FLOOR_Z + height}",
            rgba="0.30 0.31 0.33 1",
            **NO_BITS,
        )
