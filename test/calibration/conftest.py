"""The twin's cameras and a board, without its nodes: what a run of ``bid calibrate --drive`` sees."""

from __future__ import annotations

from importlib import import_module

import cv2
import numpy as np
import pytest

from bid_ros.calibration.board import Board
from bid_ros.calibration.calibrating import HAND_EYE, lens_of
from bid_ros.calibration.detection import sight
from bid_ros.calibration.proposing import PosePlan, reach_of
from bid_ros.calibration.rigid import inverse, rigid
from bid_ros.calibration.shots import Shot
from bid_ros.calibration.twin_scene import SIZE, TwinCamera
from bid_ros.cameras.config import CameraConfig
from bid_ros.core.errors import CalibrationError
from bid_ros.robots.registry import posed_arm
from bid_ros.system.folder import find_system
from bid_ros.views.outline import ScenePose

JOINT_NOISE = 0.0005  # rad
MODELS = {"franka_place": "franka.model", "ur5_pick": "ur.twin.model"}
CAMERAS = {"hand-eye": "wrist", "fixed": "third_person"}


class Rig:
    """A twin that is where it is told to be, and a camera that takes pictures of it."""

    def __init__(self, name: str, kind: str, seed: int = 0, board: Board | None = None) -> None:
        self.system, self.kind, self.board = find_system(name), kind, board or Board()
        self.home = np.array(import_module(f"bid_ros.robots.{MODELS[name]}").HOME_Q)
        task = self.system.task
        self.camera = TwinCamera(task, self.board, CAMERAS[kind], kind != HAND_EYE, seed)
        self.config = CameraConfig(CAMERAS[kind], "twin", fovy=self.camera.fovy)
        self.arm = posed_arm(task, self.system.file("robot.yaml"), True)
        self._pose, self._random = ScenePose(self.camera.model), np.random.default_rng(seed)

    def shot(self, joints, name="", noise=JOINT_NOISE) -> Shot:
        """A picture at joints in rad, with the pose that noisy encoders report."""
        self._pose.set_arm(joints, 0.04)
        image = self.camera.take(self._pose.qpos, self._pose.mocap_pos, self._pose.mocap_quat)
        place, turn = self.arm.forward(joints + self._random.normal(0.0, noise, len(joints)))
        return Shot(image, rigid(turn, place), 1_790_000_000_000_000_000, name)

    def truth(self):
        """Where the camera and the board really are, each in what it is fixed to."""
        self._pose.set_arm(self.home, 0.04)
        true = self.camera.truth(self._pose.qpos)
        place, turn = self.arm.forward(self.home)
        tool = inverse(rigid(turn, place))
        if self.kind == HAND_EYE:
            return tool @ true["camera"], true["board"]
        return true["camera"], tool @ true["board"]

    def drive(self, count=15):
        """What the plan of poses leads to: the pictures on which the board is seen."""
        place, turn = self.arm.forward(self.home)
        lens = lens_of(self.config, SIZE)
        on_tool = self.kind == HAND_EYE
        plan = PosePlan(
            self.system.task, self.board, lens, reach_of(self.arm, self.home), on_tool, rigid(turn, place), count
        )
        taken, shots, joints = [], [], self.home
        while (tool := plan.next(taken)) is not None:
            joints = self.arm.chain.inverse(tool[None, :3, 3], tool[None, :3, :3], self.home, self.arm.rest)[0]
            shot = self.shot(joints, f"{len(shots):03}.png")
            try:
                taken.append((shot.tool, sight(shot.image, self.board)))
                if not plan.scouting:
                    shots.append(shot)
            except CalibrationError:
                continue
        return shots


@pytest.fixture
def rig():
    """Make a rig; it is closed with the test."""
    made = []

    def make(*given, **named):
        made.append(Rig(*given, **named))
        return made[-1]

    yield make
    for item in made:
        item.camera.close()


def blurred(image, length=31):
    """The picture of a camera that moves sideways by so many px."""
    return cv2.filter2D(image, -1, np.full((1, length), 1.0 / length))
