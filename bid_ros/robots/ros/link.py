"""The connection to a robot that is driven through ROS: what must be there, its newest state, and what is wrong."""

import time
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.robots.bus import Bus, Channel
from bid_ros.robots.ros.activity import Activity
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.joints import JointReader, JointReading
from bid_ros.robots.ros.kinematics import kinematics_of
from bid_ros.robots.ros.tool import ModelTool, ToolSource, TransformTool
from bid_ros.robots.ros.urdf import UrdfChain, is_file, read_chain, read_chain_file

POLL_S: Final = 0.01
ADVICE: Final = "check the address, the namespace, ROS_DOMAIN_ID and that the robot's ROS driver runs"


class RosLink:
    """Topics of one robot. Any thread may call it.

    Args:
        config: of the robot.
        bus: of the robot.

    Attributes:
        joints: its measured joints.
    """

    def __init__(self, config: RosConfig, bus: Bus) -> None:
        self._config, self._bus = config, bus
        self._activity = Activity(bus, config)
        self.joints = JointReader(bus, config.joint_states)
        self._transforms = TransformTool(config, bus) if config.tool_pose == "tf" else None
        self._names = config.joint_names + ((config.gripper.joint,) if config.gripper else ())

    def open(self) -> UrdfChain | None:
        """Wait until state, URDF and controller are there. Return the arm's chain; None: it needs no URDF.

        Raises:
            ArmError: one of them does not come in time, or the URDF does not fit the configuration.
        """
        self.joints.begin()
        self._activity.begin()
        if self._transforms is not None:
            self._transforms.begin()
        if self._urdf_comes:
            self._bus.listen(Channel(self._config.urdf, "std_msgs/msg/String", latched=True))
        self.wait()
        return self._chain() if self._config.needs_urdf else None

    @property
    def _urdf_comes(self) -> bool:
        """Whether a URDF is needed, and comes on a topic."""
        return self._config.needs_urdf and not is_file(self._config.urdf)

    def wait(self) -> None:
        """Wait until the robot is there and fit; ArmError if it is not in time."""
        end = time.monotonic() + self._config.connect_timeout_s
        while problem := self._absent():
            if time.monotonic() > end:
                raise ArmError(problem)
            time.sleep(POLL_S)

    def read(self) -> JointReading:
        """Return the newest state without waiting. Raises ArmError if a joint was never measured."""
        self.joints.look()
        return JointReading.of(self.joints.of(self._config.joint_names))

    def tool(self, chain: UrdfChain | None) -> ToolSource:
        """Return what says where the tool is.

        Args:
            chain: of the arm; None only for a robot whose transforms say it.
        """
        if self._transforms is not None:
            return self._transforms
        assert chain is not None, "the robot needs a URDF"
        return ModelTool(kinematics_of(self._config, chain))

    def problem(self, reading: JointReading) -> str:
        """Return one sentence if the robot is silent, broken or not to be commanded; otherwise an empty text."""
        where = f"robot at {self._config.address}"
        if reading.age_s > self._config.state_timeout_s:
            topic = self._bus.full_name(self._config.joint_states)
            return f"{where} has been silent for {reading.age_s:.1f} s: no new state on {topic}: look at its ROS driver"
        if not np.isfinite(reading.joints).all():
            return f"{where} says {reading.joints.tolist()} rad of its joints; valid are finite numbers"
        lost = self._transforms.problem() if self._transforms is not None else ""
        other = lost or self._activity.problem()
        return f"{where}: {other}" if other else ""

    def _absent(self) -> str:
        self.joints.look()
        config, topic = self._config, self._bus.full_name(self._config.joint_states)
        if not self._bus.partners(config.joint_states):
            return f"robot at {config.address}: nobody publishes {topic}: {ADVICE}"
        missing = self.joints.missing(self._names)
        if missing and self.joints.known():
            return f"robot at {config.address}: {missing}: check the names in robot.yaml"
        if missing:
            silent = f"no answer from the robot at {config.address} within {config.connect_timeout_s:g} s"
            return f"{silent}: check why its ROS driver publishes nothing on {topic}"
        if self._urdf_comes and self._bus.latest(config.urdf) is None:
            return f"robot at {config.address}: no URDF came on {self._bus.full_name(config.urdf)}: {ADVICE}"
        return self.problem(self.read())

    def _chain(self) -> UrdfChain:
        config = self._config
        if is_file(config.urdf):
            return read_chain_file(config.urdf, config.base_link, config.tool_link, config.address)
        heard = self._bus.latest(config.urdf)
        where = f"the URDF on {self._bus.full_name(config.urdf)}"
        if heard is None:
            raise ArmError(f"robot at {config.address}: no URDF came on {self._bus.full_name(config.urdf)}: {ADVICE}")
        return read_chain(heard.message.data, config.base_link, config.tool_link, where)
