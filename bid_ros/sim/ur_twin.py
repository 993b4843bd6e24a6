"""The UR twin of the picking task: a UR controller and a Robotiq gripper over the picking scene."""

from __future__ import annotations

import time
from collections.abc import Sequence

import mujoco

from bid_ros.sim.picking import PickingEpisode, PickingTruth
from bid_ros.sim.picking_geometry import HOME_Q
from bid_ros.sim.picking_scene import picking_model
from bid_ros.sim.robotiq import RobotiqTwin
from bid_ros.sim.scene_state import SceneState
from bid_ros.sim.string_path import DEFAULT_SPEED, PickingLayout, picking_layout
from bid_ros.sim.ur.gripper_model import FingerDrive
from bid_ros.sim.ur.mujoco_plant import MujocoPlant
from bid_ros.sim.ur_controller import UrController, UrControllerConfig


class UrTwin:
    """A robot, a gripper, a table, a cup on a string and a saucer that ur_rtde cannot tell from the real thing.

    Everything is stepped in the controller's thread, at the rate of its generation. Give it a process of its own, as
    :mod:`bid_ros.sim.ur_controller` says.

    Args:
        config: which controller it is and the address to serve; default is an e-Series on 127.0.0.1.
        initial_q: ``(6,)`` joint angles at the start, rad.

    Attributes:
        bodies: names of what the ground truth has the pose of.

    Raises:
        ArmError: if the angles are not six finite ones.
    """

    bodies: tuple[str, ...] = ("cup", "saucer")

    def __init__(self, config: UrControllerConfig | None = None, initial_q: Sequence[float] = HOME_Q) -> None:
        self._model = picking_model()
        self._data = mujoco.MjData(self._model)
        self._fingers = FingerDrive(self._model, self._data)
        self._episode = PickingEpisode(self._model, self._data)
        plant = MujocoPlant(self._model, self._data, initial_q, self._before_step)
        self._controller = UrController(config or UrControllerConfig(), plant)
        self._gripper = RobotiqTwin(self.hostname, self._fingers, self._controller.in_loop)

    @property
    def hostname(self) -> str:
        """Address a ur_rtde client connects to."""
        return self._controller.hostname

    @property
    def controller(self) -> UrController:
        """The controller, to press its emergency stop or to switch it to local mode."""
        return self._controller

    def start(self) -> None:
        """Serve robot and gripper and run the physics.

        Raises:
            ArmError: if a port is taken or the address is not one of this computer.
        """
        self._controller.start()
        try:
            self._gripper.start()
        except Exception:
            self._controller.stop()
            raise

    def stop(self) -> None:
        """End the physics and close every connection; calling it again does nothing."""
        self._gripper.stop()
        self._controller.stop()

    def reset(self, seed: int, cup_speed: float = DEFAULT_SPEED) -> PickingLayout:
        """Lay out the episode of a seed: cup at the start of its path, on its string, and the saucer in its place.

        The string hangs until :meth:`start_path`. Returns the layout.

        Raises:
            ArmError: if the gripper is not open or too low over the table, or the twin does not run.
            TaskError: if the seed or the speed is not valid.
        """
        layout = picking_layout(seed, cup_speed)
        self._controller.in_loop(lambda: self._episode.lay_out(layout))
        return layout

    def start_path(self) -> None:
        """Let the string begin to pull; raises ArmError if the twin does not run."""
        self._controller.in_loop(self._episode.start_path)

    def scene_state(self) -> SceneState:
        """Return the state between two steps; raises ArmError if the twin does not run."""
        return self._controller.in_loop(self._take_state)

    def ground_truth(self) -> PickingTruth:
        """Return where cup, saucer and tool are, between two steps; raises ArmError if the twin does not run."""
        return self._controller.in_loop(lambda: self._episode.ground_truth(time.time_ns()))

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept, as :meth:`bid_ros.sim.ur_controller.UrController.statistics` does."""
        return self._controller.statistics()

    def _before_step(self) -> None:
        self._fingers.step(self._model.opt.timestep)
        self._episode.before_step()

    def _take_state(self) -> SceneState:
        data = self._data
        return SceneState(time.time_ns(), data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())
