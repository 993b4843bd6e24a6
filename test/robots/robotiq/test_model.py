import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest
from robots.straight_move import straight_move

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.robotiq.model import (
    GRIP,
    OPENING,
    PADS,
    TOOL_FROM_FLANGE,
    FingerDrive,
    FingerStatus,
    add_gripper,
)
from bid_ros.robots.robotiq.registers import FORCE_RANGE, MAX_OPENING
from bid_ros.robots.ur.kinematics import UR5E, ToolKinematics
from bid_ros.robots.ur.twin.model import add_ur5e, compile_scene, empty_scene
from bid_ros.robots.ur.twin.mujoco_plant import MujocoPlant
from bid_ros.sim.mjcf import OBJECT_BITS, geom, part, text

MIN_FORCE, MAX_FORCE = FORCE_RANGE
HOME = np.array([0.0, -1.6, 1.8, -1.77, -1.57, 0.0])
REST = np.zeros(6)
TCP = np.array([0.0, 0.0, TOOL_FROM_FLANGE, 0.0, 0.0, 0.0])
DT = 0.002
CUP_RADIUS = 0.035


class Cell:
    """Arm, gripper and an upright cup at the tool centre point that hangs in the air until :meth:`let_go`."""

    def __init__(self, mass: float = 0.2) -> None:
        scene = empty_scene()
        worldbody = part(scene, "worldbody")
        add_gripper(scene, add_ur5e(worldbody))
        cup = ET.SubElement(worldbody, "body", name="cup", pos=text(UR5E.forward(HOME, TCP)[:3].tolist()))
        ET.SubElement(cup, "freejoint", name="cup")
        geom(cup, "cylinder", name="cup", size=f"{CUP_RADIUS} 0.045", mass=str(mass), **GRIP, **OBJECT_BITS)
        self.model = compile_scene(scene)
        self.data = mujoco.MjData(self.model)
        self.fingers = FingerDrive(self.model, self.data)
        self.plant = MujocoPlant(self.model, self.data, HOME, self._before_step)
        self.q, self.qd = HOME, REST
        joint = self.model.joint("cup")
        self._qpos, self._dof = int(joint.qposadr[0]), int(joint.dofadr[0])
        self._hung = self.data.qpos[self._qpos : self._qpos + 7].copy()
        self.hangs = True

    def _before_step(self) -> None:
        self.fingers.step(DT)
        if self.hangs:
            self.data.qpos[self._qpos : self._qpos + 7] = self._hung
            self.data.qvel[self._dof : self._dof + 6] = 0.0

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / DT)):
            self.plant.step(self.q, self.qd, DT)

    def move(self, by: list[float], speed: float) -> None:
        for q, qd in straight_move(ToolKinematics(UR5E, TCP), self.q, by, speed, DT):
            self.q, self.qd = q, qd
            self.plant.step(q, qd, DT)

    def cup_in_tool(self) -> np.ndarray:
        pose = UR5E.forward(self.plant.joint_positions, TCP)
        return matrix_from_vector(pose[3:]).T @ (self.data.qpos[self._qpos : self._qpos + 3] - pose[:3])

    def remove_cup(self) -> None:
        self._hung[2] = 5.0


@pytest.fixture
def empty() -> Cell:
    cell = Cell()
    cell.remove_cup()
    return cell


def test_pads_are_at_the_tool_centre_point_and_as_far_apart_as_the_opening(empty: Cell) -> None:
    data = empty.data
    empty.fingers.place(0.04)
    mujoco.mj_kinematics(empty.model, data)
    left, right = (data.geom_xpos[empty.model.geom(pad).id] for pad in PADS)
    half = empty.model.geom(PADS[0]).size[1]
    np.testing.assert_allclose((left + right) / 2, UR5E.forward(HOME, TCP)[:3], atol=1e-9)
    assert np.linalg.norm(left - right) - 2 * half == pytest.approx(0.04)


@pytest.mark.parametrize("speed", [0.02, 0.15])
def test_closes_and_opens_at_the_speed(empty: Cell, speed: float) -> None:
    fingers = empty.fingers
    fingers.command(0.02, speed, MIN_FORCE)
    empty.wait(0.2)
    assert fingers.status is FingerStatus.MOVING
    assert fingers.speed == pytest.approx(-speed, rel=0.02)
    empty.wait(0.065 / speed)
    assert fingers.status is FingerStatus.AT_TARGET
    assert fingers.opening == pytest.approx(0.02, abs=1e-4)
    fingers.command(MAX_OPENING, speed, MIN_FORCE)
    empty.wait(0.2)
    assert fingers.speed == pytest.approx(speed, rel=0.02)


def test_fingers_close_fully_and_stay_in_step(empty: Cell) -> None:
    empty.fingers.command(0.0, 0.15, MAX_FORCE)
    empty.wait(0.9)
    assert empty.fingers.status is FingerStatus.AT_TARGET
    assert empty.fingers.opening == pytest.approx(0.0, abs=1e-4)
    left, right = (float(empty.data.joint(f"{name}_finger_joint").qpos[0]) for name in ("left", "right"))
    assert left == pytest.approx(right, abs=1e-4)


@pytest.mark.parametrize("target", [0.0, MAX_OPENING])
def test_fingers_that_are_stopped_stand_where_they_are(empty: Cell, target: float) -> None:
    fingers = empty.fingers
    fingers.place(0.04)
    fingers.command(target, 0.15, MIN_FORCE)
    empty.wait(0.1)
    at = fingers.opening
    fingers.stop()
    empty.wait(0.2)
    assert fingers.opening == pytest.approx(at, abs=2e-3) and abs(fingers.speed) < 1e-3
    assert fingers.status is FingerStatus.AT_TARGET


def test_a_push_to_one_side_does_not_shift_the_fingers(empty: Cell) -> None:
    empty.fingers.place(0.04)
    empty.wait(0.1)
    for name, push in (("left", 60.0), ("right", -60.0)):
        empty.data.joint(f"{name}_finger_joint").qfrc_applied[0] = push
    empty.wait(0.5)
    for name in ("left", "right"):
        assert float(empty.data.joint(f"{name}_finger_joint").qpos[0]) == pytest.approx(0.02, abs=5e-4)


@pytest.mark.parametrize(("mass", "force"), [(0.1, MIN_FORCE), (0.2, MIN_FORCE), (0.2, 60.0), (0.1, MAX_FORCE)])
def test_cup_is_held_carried_and_dropped(mass: float, force: float) -> None:
    cell = Cell(mass)
    cell.fingers.command(0.0, 0.1, force)
    cell.wait(0.6)
    assert cell.fingers.status is FingerStatus.BLOCKED_CLOSING
    assert cell.data.actuator(OPENING).force[0] == pytest.approx(-force)
    assert 2 * CUP_RADIUS - 0.001 < cell.fingers.opening < 2 * CUP_RADIUS
    cell.hangs = False
    cell.wait(0.2)
    held = cell.cup_in_tool()
    cell.move([0.0, 0.3, 0.1], 0.5)
    cell.move([0.05, -0.4, -0.1], 0.5)
    cell.wait(1.0)
    assert np.linalg.norm(cell.cup_in_tool() - held) < 0.002
    cell.fingers.command(MAX_OPENING, 0.15, MIN_FORCE)
    cell.wait(0.4)
    assert cell.cup_in_tool()[2] > 0.05  # the tool looks down
    assert cell.fingers.status is FingerStatus.AT_TARGET


def test_a_held_cup_stays_held_when_the_fingers_are_stopped() -> None:
    cell = Cell()
    cell.fingers.command(0.0, 0.1, MIN_FORCE)
    cell.wait(0.6)
    cell.fingers.stop()
    cell.hangs = False
    cell.wait(0.2)
    held = cell.cup_in_tool()
    cell.move([0.0, 0.3, 0.1], 0.5)
    cell.wait(0.5)
    assert cell.fingers.status is FingerStatus.BLOCKED_CLOSING and np.linalg.norm(cell.cup_in_tool() - held) < 0.002


def test_each_pad_presses_with_the_force() -> None:
    cell = Cell()
    cell.fingers.command(0.0, 0.1, 100.0)
    cell.wait(0.6)
    pressing = dict.fromkeys(PADS, 0.0)
    wrench = np.zeros(6)
    for index, contact in enumerate(cell.data.contact):
        mujoco.mj_contactForce(cell.model, cell.data, index, wrench)
        for pad in PADS:
            if cell.model.geom(pad).id in (contact.geom1, contact.geom2):
                pressing[pad] += wrench[0]
    assert pressing == pytest.approx(dict.fromkeys(PADS, 100.0), rel=0.03)


def test_opening_begins_at_once_after_a_long_squeeze() -> None:
    cell = Cell()
    cell.fingers.command(0.0, 0.15, MAX_FORCE)
    cell.wait(2.0)
    before = cell.fingers.opening
    cell.fingers.command(MAX_OPENING, 0.15, MIN_FORCE)
    cell.wait(0.05)
    assert cell.fingers.opening > before + 0.003


def test_blocked_from_outside_while_opening(empty: Cell) -> None:
    empty.fingers.place(0.02)
    for name in ("left", "right"):
        empty.data.joint(f"{name}_finger_joint").qfrc_applied[0] = -60.0
    empty.fingers.command(MAX_OPENING, 0.1, 30.0)
    empty.wait(0.5)
    assert empty.fingers.status is FingerStatus.BLOCKED_OPENING


@pytest.mark.parametrize(
    ("opening", "speed", "force", "message"),
    [
        (0.1, 0.1, 50.0, "opening is 0.1 m; valid is 0.0 to 0.085"),
        (0.0, 0.5, 50.0, "speed is 0.5 m/s"),
        (0.0, 0.1, 5.0, "force is 5.0 N; valid is 20.0 to 235.0"),
        (float("nan"), 0.1, 50.0, "opening is nan m"),
    ],
)
def test_impossible_command_changes_nothing(
    empty: Cell, opening: float, speed: float, force: float, message: str
) -> None:
    empty.fingers.command(0.05, 0.1, 50.0)
    with pytest.raises(ArmError, match=message):
        empty.fingers.command(opening, speed, force)
    assert empty.fingers.target == 0.05


def test_scene_without_a_gripper_is_refused() -> None:
    scene = empty_scene()
    add_ur5e(part(scene, "worldbody"))
    model = compile_scene(scene)
    with pytest.raises(ArmError, match="the scene has no gripper to drive"):
        FingerDrive(model, mujoco.MjData(model))
