"""The twin of an arm that is driven through ROS: ros2_control's controllers over a UR5e in the scene of a task."""

import mujoco

from bid_ros.robots.bus import Bus
from bid_ros.robots.robotiq.model import FingerDrive
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.twin.description import StatePublisher, arm_urdf
from bid_ros.robots.ros.twin.manager import CYCLE_S, RobotUnderControl
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController
from bid_ros.robots.ur.twin.model import HOME_Q, scene_model
from bid_ros.robots.ur.twin.mujoco_plant import MujocoPlant
from bid_ros.sim.loop import StepLoop
from bid_ros.sim.twin import SceneTwin, TwinScene


class RosTwin(SceneTwin):
    """A robot whose topics a client cannot tell from those of a real one.

    Args:
        scene: what stands around the robot.
        address: names it; its topics are in the namespace of the bus.
        bus: its topics.
        config: of the robot; its controller is the one that is active, and it publishes transforms if they say where
            the tool is. None: the controller of trajectories, and no transforms.

    Attributes:
        bodies: names of what the ground truth has the pose of.
        hostname: the address.
        robot: the robot, to switch its controllers, in the loop's thread.
    """

    def __init__(
        self,
        scene: TwinScene,
        address: str,
        bus: Bus,
        config: RosConfig | None = None,
    ) -> None:
        self._model = scene_model(scene)
        self._data = mujoco.MjData(self._model)
        self._fingers = FingerDrive(self._model, self._data)
        self._bus, self.hostname = bus, address
        self._controller = TrajectoryController.name if config is None else config.controller
        plant = MujocoPlant(self._model, self._data, HOME_Q, self._before_step)
        frames = (
            StatePublisher(bus, arm_urdf(), config.tf, config.tf_static)
            if config is not None and config.tool_pose == "tf"
            else None
        )
        self.robot = RobotUnderControl(bus, plant, self._fingers, frames)
        super().__init__(scene, StepLoop("the twin", round(CYCLE_S * 1e9), self.robot.cycle))
        self._world = scene.world(self._model, self._data)

    def start(self) -> None:
        """Open the topics and run the physics. Raises ArmError if a message type or the controller is not there."""
        self.robot.start(self._controller or TrajectoryController.name)
        self._loop.start()

    def stop(self) -> None:
        """End the physics and the topics; calling it again does nothing."""
        self._loop.stop()
        self._bus.close()

    def _before_step(self) -> None:
        self._fingers.step(self._model.opt.timestep)
        self._world.before_step()
