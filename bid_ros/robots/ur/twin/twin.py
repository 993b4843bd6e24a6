"""The UR twin: a UR controller and a Robotiq gripper over the scene of a task."""

from functools import partial

import mujoco

from bid_ros.robots.robotiq.model import FingerDrive
from bid_ros.robots.robotiq.twin import RobotiqTwin
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.model import HOME_Q, scene_model
from bid_ros.robots.ur.twin.mujoco_plant import MujocoPlant
from bid_ros.sim.twin import SceneTwin, TwinScene


class UrTwin(SceneTwin):
    """A robot and a gripper in the scene of a task, which ur_rtde cannot tell from the real thing.

    Everything is stepped in the controller's thread, at the rate of its generation. Give it a process of its own, as
    :mod:`bid_ros.robots.ur.twin.controller` says.

    Args:
        scene: what stands around the robot.
        address: IPv4 address of this computer to serve an e-Series on.

    Attributes:
        bodies: names of what the ground truth has the pose of.
        hostname: address a ur_rtde client connects to.
        controller: of the robot, to press its emergency stop or to switch it to local mode.

    Raises:
        ArmError: if the address is none.
    """

    def __init__(self, scene: TwinScene, address: str = "127.0.0.1") -> None:
        self._model = scene_model(scene)
        self._data = mujoco.MjData(self._model)
        self._fingers = FingerDrive(self._model, self._data)
        plant = MujocoPlant(self._model, self._data, HOME_Q, self._before_step)
        gripper = RobotiqTwin(self._fingers)
        self.controller = UrController(UrControllerConfig(address), plant, gripper=gripper)
        super().__init__(scene, self.controller.loop)
        self.harms = {
            "cable": partial(self._loop.call, self.controller.unplug),
            "emergency_stop": partial(self._loop.call, self.controller.machine.emergency_stop),
        }
        self.hostname = address
        self._world = scene.world(self._model, self._data)

    def start(self) -> None:
        """Serve robot and gripper and run the physics.

        Raises:
            ArmError: if a port is taken or the address is not one of this computer.
        """
        self.controller.start()

    def stop(self) -> None:
        """End the physics and close every connection; calling it again does nothing."""
        self.controller.stop()

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept, as the controller's statistics say it."""
        return self.controller.statistics()

    def _before_step(self) -> None:
        self._fingers.step(self._model.opt.timestep)
        self._world.before_step()
