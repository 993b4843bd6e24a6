"""Small pieces of MuJoCo's MJCF for scenes."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final

import numpy as np

# Contact bits: hand, objects and world touch one another, but objects no objects. NO_BITS touches nothing.
HAND_BITS: Final = {"contype": "1", "conaffinity": "6"}
OBJECT_BITS: Final = {"contype": "2", "conaffinity": "5"}
WORLD_BITS: Final = {"contype": "4", "conaffinity": "3"}
NO_BITS: Final = {"contype": "0", "conaffinity": "0"}


def geom(parent: ET.Element, kind: str, **attributes: str) -> None:
    """Add a geom of a type such as ``box`` to a body."""
    ET.SubElement(parent, "geom", {"type": kind, **attributes})


def part(scene: ET.Element, path: str) -> ET.Element:
    """Return a part of a scene that has it, by its path as :mod:`xml.etree.ElementTree` understands it."""
    found = scene.find(path)
    assert found is not None, path
    return found


def text(values: Sequence[float]) -> str:
    """Return numbers as MJCF text."""
    return " ".join(str(float(value)) for value in values)


def look(position: Sequence[float], target: Sequence[float], up: Sequence[float] = (0.0, 0.0, 1.0)) -> str:
    """Return ``xyaxes`` of a camera at ``position`` that looks at ``target``, with ``up`` towards the image's top."""
    back = np.subtract(position, target)
    back = back / math.hypot(*back)
    right = np.cross(up, back)
    right = right / math.hypot(*right)
    return text([*right, *np.cross(back, right)])


def plain_visuals(scene: ET.Element, centre: Sequence[float]) -> None:
    """Make a scene cheap to render: one headlight, no shadows, no multisampling, coarse curves.

    Its sky is for pictures that a person looks at. Images of a policy are black where nothing is.

    Args:
        scene: the ``mujoco`` element.
        centre: ``(3,)`` m, middle of the visible scene.
    """
    visual = ET.SubElement(scene, "visual")
    ET.SubElement(visual, "headlight", ambient="0.45 0.45 0.45", diffuse="0.25 0.25 0.25", specular="0 0 0")
    ET.SubElement(visual, "quality", shadowsize="0", offsamples="0", numslices="16", numstacks="6", numquads="1")
    ET.SubElement(visual, "global", offwidth="640", offheight="640")
    ET.SubElement(visual, "map", znear="0.02", zfar="4")
    ET.SubElement(scene, "statistic", extent="1", center=text(centre))
    add_sky(scene)


def add_sky(scene: ET.Element) -> None:
    """Add the assets of a sky, from light at the horizon to grey."""
    asset = scene.find("asset")
    asset = ET.SubElement(scene, "asset") if asset is None else asset
    colours = {"rgb1": "0.93 0.95 0.97", "rgb2": "0.62 0.68 0.75"}
    ET.SubElement(asset, "texture", {"type": "skybox", "builtin": "gradient", "width": "64", "height": "64", **colours})


def lamp(worldbody: ET.Element, position: Sequence[float], direction: Sequence[float]) -> None:
    """Add a distant lamp without shadows, which gives surfaces their shape."""
    where = {"name": "lamp", "pos": text(position), "dir": text(direction), "directional": "true"}
    ET.SubElement(
        worldbody, "light", {**where, "castshadow": "false", "diffuse": "0.55 0.55 0.55", "specular": "0 0 0"}
    )
