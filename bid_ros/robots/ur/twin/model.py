"""UR5e as MuJoCo's MJCF, alone or with its gripper in the scene of a task.

Kinematics, masses and inertias are published ones, the light geometry is our own.

Every moving body lies in the frame its joint turns: body ``i`` is Denavit-Hartenberg frame ``i - 1``, so the robot's
base body has the controller's base frame and ``tool0`` its flange frame, with no turn between them and
:mod:`bid_ros.robots.ur.kinematics`. The joints have no actuators:
:class:`~bid_ros.robots.ur.twin.mujoco_plant.MujocoPlant` computes the torques.

Sources: Universal Robots, "DH parameters for calculations of kinematics and dynamics" (kinematics, masses, centres of
mass); Universal Robots, "Max. joint torques" and UR5e user manual (limits); inertia tensors of the manufacturer's
ROS 2 description. Not published, so plausible values of our own: rotor inertia and joint friction.
"""

import math
import xml.etree.ElementTree as ET
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.robots.robotiq.model import FINGERS, TOOL_FROM_FLANGE, add_gripper
from bid_ros.robots.ur.config import JOINT_NAMES
from bid_ros.robots.ur.kinematics import UR5E, Kinematics
from bid_ros.sim.limbs import Limbs
from bid_ros.sim.mjcf import NO_BITS, geom, lamp, part, plain_visuals, text
from bid_ros.sim.studio import furnish_studio
from bid_ros.sim.twin import TwinScene

MODEL_JOINTS: Final = tuple(f"{name}_joint" for name in JOINT_NAMES)
TORQUE_LIMITS: Final = (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)  # N m
FLANGE: Final = "tool0"
TIMESTEP_S: Final = 0.002
# Joint angles in rad that put the tool at (0.48, -0.05, 0.28) m, pointing straight down, fingers opening along base y.
HOME_Q: Final = (2.75794812, -1.63276659, 1.72746235, -1.66549208, -1.57079633, -1.95444082)

LIMBS: Final = Limbs(
    MODEL_JOINTS, HOME_Q, TORQUE_LIMITS, "gripper", TOOL_FROM_FLANGE, (f"{FINGERS[0]}_joint", f"{FINGERS[1]}_joint")
)

_JOINT_RANGE: Final = 2 * math.pi  # rad either way
_GREY: Final = "0.72 0.74 0.76 1"
_BLUE: Final = "0.35 0.55 0.72 1"


# Of each moving link, base to flange: mass in kg, centre of mass in m, and inertia about that in kg m2 as xx yy zz xy
# xz yz. The last two are in the frame at the link's far end.
_BODIES: Final = ("shoulder_link", "upper_arm_link", "forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link")
_MASSES: Final = (3.761, 8.058, 2.846, 1.37, 1.3, 0.365)
_CENTRES: Final = (
    (0.0, -0.02561, 0.00193),
    (0.2125, 0.0, 0.11336),
    (0.15, 0.0, 0.0265),
    (0.0, -0.0018, 0.01634),
    (0.0, 0.0018, 0.01634),
    (0.0, 0.0, -0.001159),
)
_INERTIAS: Final = (
    (0.00700210, 0.00648091, 0.00657286, 0.00000073, -0.00001053, 0.00049994),
    (0.01505885, 0.33388086, 0.33247207, -0.00005400, 0.00000563, -0.00000181),
    (0.00399632, 0.07879254, 0.07848510, -0.00001365, 0.00137272, -0.00000660),
    (0.00165491, 0.00135962, 0.00126279, -0.00000282, -0.00000438, 0.00010157),
    (0.00135617, 0.00127827, 0.00096614, -0.00000274, 0.00000444, -0.00005048),
    (0.00018694, 0.00018908, 0.00025756, 0.00000006, -0.00000017, -0.00000092),
)
_ARMATURES: Final = (0.5, 0.5, 0.3, 0.1, 0.1, 0.1)  # rotor inertia behind the gear, kg m2
_DAMPINGS: Final = (6.0, 6.0, 4.0, 1.0, 1.0, 1.0)  # N m s/rad
# Body, from and to (m, the link's own joint frame), radius, colour.
_CAPSULES: Final = (
    ("shoulder_link", "0 0 0.09  0 0 0.1625", 0.058, _GREY),
    ("upper_arm_link", "0 0 0.05  0 0 0.138", 0.058, _BLUE),
    ("upper_arm_link", "0 0 0.138  -0.425 0 0.138", 0.05, _GREY),
    ("upper_arm_link", "-0.425 0 0.138  -0.425 0 0.06", 0.053, _BLUE),
    ("forearm_link", "0 0 0.02  -0.3922 0 0.01", 0.04, _GREY),
    ("wrist_1_link", "0 0 0.04  0 0 0.1333", 0.038, _BLUE),
    ("wrist_2_link", "0 0 0.02  0 0 0.0997", 0.038, _BLUE),
    ("wrist_3_link", "0 0 0.055  0 0 0.065", 0.034, _GREY),
)


# The same links as they look: housings of cast aluminium, tubes between them, and lids over the joints.
_ALUMINIUM, _TUBE, _LID = "0.80 0.81 0.82 1", "0.70 0.71 0.73 1", "0.42 0.62 0.76 1"
_OUTLINES: Final = (
    ("base", "0 0 0  0 0 0.018", 0.0745, _TUBE),
    ("base", "0 0 0.018  0 0 0.085", 0.064, _ALUMINIUM),
    ("shoulder_link", "0 0 0.087  0 0 0.222", 0.0605, _ALUMINIUM),
    ("shoulder_link", "0 0 0.222  0 0 0.228", 0.056, _LID),
    ("shoulder_link", "0 0 0.1625  0 -0.072 0.1625", 0.0600, _ALUMINIUM),
    ("upper_arm_link", "0 0 0.074  0 0 0.205", 0.0605, _ALUMINIUM),
    ("upper_arm_link", "0 0 0.205  0 0 0.211", 0.056, _LID),
    ("upper_arm_link", "-0.045 0 0.138  -0.385 0 0.138", 0.0435, _TUBE),
    ("upper_arm_link", "-0.425 0 0.196  -0.425 0 0.078", 0.0565, _ALUMINIUM),
    ("upper_arm_link", "-0.425 0 0.196  -0.425 0 0.202", 0.052, _LID),
    ("forearm_link", "0 0 0.074  0 0 -0.045", 0.0535, _ALUMINIUM),
    ("forearm_link", "0 0 -0.045  0 0 -0.051", 0.049, _LID),
    ("forearm_link", "-0.035 0 0.007  -0.36 0 0.007", 0.0365, _TUBE),
    ("forearm_link", "-0.3922 0 -0.045  -0.3922 0 0.06", 0.0425, _ALUMINIUM),
    ("forearm_link", "-0.3922 0 -0.045  -0.3922 0 -0.051", 0.039, _LID),
    ("wrist_1_link", "0 0 0.062  0 0 0.178", 0.0415, _ALUMINIUM),
    ("wrist_1_link", "0 0 0.178  0 0 0.184", 0.038, _LID),
    ("wrist_1_link", "0 0 0.1333  0 -0.05 0.1333", 0.0410, _ALUMINIUM),
    ("wrist_2_link", "0 0 0.052  0 0 0.143", 0.0415, _ALUMINIUM),
    ("wrist_2_link", "0 0 0.143  0 0 0.149", 0.038, _LID),
    ("wrist_2_link", "0 0 0.0997  0 0.05 0.0997", 0.0405, _ALUMINIUM),
    ("wrist_3_link", "0 0 0.052  0 0 0.0996", 0.0375, _TUBE),
)


def empty_scene(timestep: float = TIMESTEP_S) -> ET.Element:
    """Return a ``mujoco`` element with the options that the arm and a firm grip need, and an empty ``worldbody``.

    Args:
        timestep: of the physics, s.
    """
    scene = ET.Element("mujoco", model="ur5e")
    ET.SubElement(scene, "compiler", angle="radian", autolimits="true")
    # An elliptic cone with a high ratio of friction to normal stiffness keeps a held object from creeping.
    ET.SubElement(scene, "option", timestep=str(timestep), integrator="implicitfast", cone="elliptic", impratio="20")
    ET.SubElement(scene, "worldbody")
    return scene


def add_ur5e(worldbody: ET.Element, *, kinematics: Kinematics = UR5E) -> ET.Element:
    """Put a UR5e with its foot at the origin into a scene and return its ``tool0`` body, the flange.

    Args:
        worldbody: the element of the scene that the robot's bodies go into.
        kinematics: lengths of the links; masses and looks stay the UR5e's.

    Returns:
        The body at the flange, z out of it, where :func:`bid_ros.robots.robotiq.model.add_gripper` or a tool goes.
    """
    base = ET.SubElement(worldbody, "body", name="base")
    _capsule(base, "0 0 0.02  0 0 0.05", 0.07, _GREY)
    parent, place, turn = base, np.zeros(3), 0.0
    for number, (a, d, alpha) in enumerate(kinematics.table):
        parent = _frame(parent, _BODIES[number], place, turn)
        ET.SubElement(
            parent,
            "joint",
            name=MODEL_JOINTS[number],
            axis="0 0 1",
            range=f"{-_JOINT_RANGE} {_JOINT_RANGE}",
            armature=str(_ARMATURES[number]),
            damping=str(_DAMPINGS[number]),
        )
        place, turn = np.array([a, 0.0, d]), alpha
        _inertial(parent, number, place, turn)
        for body, ends, radius, colour in _CAPSULES:
            if body == _BODIES[number]:
                _capsule(parent, ends, radius, colour)
    return _frame(parent, FLANGE, place, turn)


def compile_scene(scene: ET.Element) -> mujoco.MjModel:
    """Compile a scene that was built with this module."""
    return mujoco.MjModel.from_xml_string(ET.tostring(scene, encoding="unicode"))


def scene_model(scene: TwinScene) -> mujoco.MjModel:
    """Compile the twin's scene: one model for the physics and, in another process, for the cameras."""
    found = empty_scene()
    plain_visuals(found, (0.5, 0.0, 0.15))
    worldbody = part(found, "worldbody")
    lamp(worldbody, (1.0, -0.6, 2.0), (-0.4, 0.35, -1.0))
    scene.furnish(found, add_gripper(found, add_ur5e(worldbody)))
    return compile_scene(found)


def picture_model(scene: TwinScene) -> mujoco.MjModel:
    """Compile the same scene with the robot's outlines, lit for pictures; ``qpos`` as the twin's."""
    found = empty_scene()
    worldbody = part(found, "worldbody")
    scene.furnish(found, add_gripper(found, add_ur5e(worldbody)))
    for name in ("base", *_BODIES):
        body = part(worldbody, f".//body[@name='{name}']")
        for old in body.findall("geom"):
            body.remove(old)
    for name, ends, radius, colour in _OUTLINES:
        shell = {"fromto": ends, "size": str(radius), "rgba": colour}
        geom(part(worldbody, f".//body[@name='{name}']"), "cylinder", **shell, **NO_BITS)
    furnish_studio(found, (1.65, -1.05, 0.75), (0.34, 0.0, 0.24))
    return compile_scene(found)


def _frame(parent: ET.Element, name: str, place: NDArray[np.float64], turn: float) -> ET.Element:
    """Add a body at ``place`` (3,) m, turned by ``turn`` rad about x, both in the parent's frame."""
    quat = f"{math.cos(turn / 2)} {math.sin(turn / 2)} 0 0"
    return ET.SubElement(parent, "body", name=name, pos=text(place.tolist()), quat=quat)


def _inertial(body: ET.Element, link: int, place: NDArray[np.float64], turn: float) -> None:
    """Carry mass and inertia from the frame at the link's far end (at ``place``, turned about x) to its joint frame."""
    cosine, sine = math.cos(turn), math.sin(turn)
    rotation = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
    xx, yy, zz, xy, xz, yz = _INERTIAS[link]
    tensor = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
    six = [tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2]]
    centre = place + rotation @ np.array(_CENTRES[link])
    ET.SubElement(body, "inertial", pos=text(centre.tolist()), mass=str(_MASSES[link]), fullinertia=text(six))


def _capsule(body: ET.Element, ends: str, radius: float, colour: str) -> None:
    geom(body, "capsule", size=str(radius), fromto=ends, rgba=colour, **NO_BITS)
