"""The Franka of the twin: franky-sim's robot with plain visuals, in the scene of a task.

franky-sim's link meshes take most of the time of a rendered frame and of a step, so they are replaced by a few
boxes and capsules. Masses and inertias are untouched: the model states them per body, not per geom.
"""

import math
import xml.etree.ElementTree as ET
from typing import Final

import mujoco
from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.robots.franka.config import OPEN_WIDTH
from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.sim.limbs import Limbs
from bid_ros.sim.mjcf import HAND_BITS, NO_BITS, geom, lamp, part, plain_visuals
from bid_ros.sim.studio import furnish_studio
from bid_ros.sim.twin import TwinScene

ROBOT: Final = "robot0_"
TOOL_FROM_HAND: Final = 0.1034  # m along the hand's z axis, as franky-sim's end-effector frame
# Joint angles in rad that put the tool at (0.45, 0, 0.32) m, pointing straight down, fingers opening along base y.
HOME_Q: Final = (0.0, -0.28278114, 0.0, -2.40004545, 0.0, 2.11726431, math.pi / 4)

LIMBS: Final = Limbs(
    joints=tuple(f"{ROBOT}fr3_joint{number}" for number in range(1, 8)),
    home=HOME_Q,
    torques=(87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
    hand=f"{ROBOT}hand",
    tool=TOOL_FROM_HAND,
    fingers=(f"{ROBOT}finger_joint1", f"{ROBOT}finger_joint2"),
)

# Rubber on a firm cylinder. The default contact is so soft for these small masses that 40 N press 3 mm into it.
GRIP: Final = {"friction": "1.5 0.01 0.0001", "condim": "4", "solref": "0.003 1", "solimp": "0.95 0.99 0.0005"}

_WHITE: Final = "0.85 0.86 0.88 1"
_DARK: Final = "0.25 0.26 0.28 1"

# Capsules per link: from, to (m, link frame), radius.
_LINKS: Final = (
    ("fr3_link0", "0 0 0.06  0 0 0.18", 0.075),
    ("fr3_link1", "0 0 -0.14  0 0 0", 0.07),
    ("fr3_link2", "0 0 0  0 -0.19 0", 0.065),
    ("fr3_link3", "0 0 -0.12  0.0825 0 0", 0.06),
    ("fr3_link4", "0 0 0  -0.0825 0.11 0", 0.058),
    ("fr3_link5", "0 0 -0.26  0 0 0", 0.052),
    ("fr3_link6", "0 0 0  0.088 0 0", 0.05),
    ("fr3_link7", "0 0 0  0 0 0.075", 0.042),
)


def build_simulator(scene: TwinScene) -> MujocoSimulator:
    """Return franky-sim's simulator, not started, with the robot in a task's scene, at rest and its gripper open."""
    simulator = _simulator()
    _plain_scene(simulator.scene)
    _plain_robot(simulator.worldbody)
    lamp(simulator.worldbody, (1.0, -0.6, 2.0), (-0.4, 0.35, -1.0))
    scene.furnish(simulator.scene, _body(simulator.worldbody, "hand"))
    return simulator


def scene_model(scene: TwinScene) -> mujoco.MjModel:
    """Compile the twin's scene by itself: the same ``qpos`` and mocap layout, for a renderer in another process."""
    return mujoco.MjModel.from_xml_string(ET.tostring(build_simulator(scene).scene, encoding="unicode"))


def picture_model(scene: TwinScene) -> mujoco.MjModel:
    """Compile the same scene with franky-sim's own outlines of the robot, lit for pictures (``qpos`` as the twin's)."""
    simulator = _simulator()
    simulator.scene.remove(part(simulator.scene, "visual"))
    scene.furnish(simulator.scene, _body(simulator.worldbody, "hand"))
    furnish_studio(simulator.scene, (1.65, -1.05, 0.75), (0.34, 0.0, 0.31))
    return mujoco.MjModel.from_xml_string(ET.tostring(simulator.scene, encoding="unicode"))


def _simulator() -> MujocoSimulator:
    """Return a simulator with the robot and nothing else."""
    simulator = MujocoSimulator()
    for child in list(simulator.worldbody):
        simulator.worldbody.remove(child)  # the checkered floor and its three lights
    FastFrankaRobot.take_over(simulator.add_robot(initial_q=HOME_Q, initial_hand_width=OPEN_WIDTH))
    return simulator


def _plain_scene(scene: ET.Element) -> None:
    asset = part(scene, "asset")
    for child in list(asset):
        asset.remove(child)
    # An elliptic cone with a high ratio of friction to normal stiffness keeps a held object from creeping.
    part(scene, "option").attrib.update(cone="elliptic", impratio="20")
    scene.remove(part(scene, "visual"))
    plain_visuals(scene, (0.5, 0.0, 0.2))


def _plain_robot(worldbody: ET.Element) -> None:
    for body in worldbody.iter("body"):
        for mesh in body.findall("geom"):
            body.remove(mesh)
    for name, ends, radius in _LINKS:
        geom(_body(worldbody, name), "capsule", size=str(radius), fromto=ends, rgba=_WHITE, **NO_BITS)
    hand = _body(worldbody, "hand")
    geom(hand, "box", size="0.03 0.10 0.033", pos="0 0 0.033", rgba=_WHITE, **HAND_BITS)
    for side in ("left_finger", "right_finger"):
        finger = _body(worldbody, side)
        geom(finger, "box", size="0.0105 0.0065 0.019", pos="0 0.0145 0.018", rgba=_DARK, **HAND_BITS)
        # A flat pad, 21 x 18 mm, in place of franky-sim's five boxes: four firm contacts on a cylinder.
        geom(finger, "box", size="0.0105 0.005 0.009", pos="0 0.005 0.045", rgba=_DARK, **GRIP, **HAND_BITS)


def _body(worldbody: ET.Element, name: str) -> ET.Element:
    return part(worldbody, f".//body[@name='{ROBOT}{name}']")
