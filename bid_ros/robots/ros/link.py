"""The connection to a robot that is driven through ROS: what must be there, its newest state, and what is wrong."""

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, quaternion_from_matrix
from bid_ros.robots.bus import Bus, Channel
from bid_ros.robots.ros.activity import Activity
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.joints import JointReader, arrays
from bid_ros.robots.ros.kinematics import kinematics_of
from bid_ros.robots.ros.urdf import Chain, is_file, read_chain, read_chain_file

POLL_S: Final = 0.01
ADVICE: Final = "check the address, the namespace, ROS_DOMAIN_ID and that the robot's ROS driver runs"


@dataclass(frozen=True)
class Reading:
    """The arm as it was measured last.

    Attributes:
        stamp_ns: wall time, ns; of the joint that was measured first.
        joints, speeds: ``(n,)`` rad and rad/s.
        age_s: since the arrival of that measurement.
    """

    stamp_ns: int
    joints: Array
    speeds: Array
    age_s: float


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
        self._activity = Activity(bus, config.activity, config.controller)
        self.joints = JointReader(bus, config.joint_states)
        self._names = config.joint_names + ((config.gripper.joint,) if config.gripper else ())

    def open(self) -> Chain:
        """Wait until state, URDF and controller are there. Return the arm's chain.

        Raises:
            ArmError: one of them does not come in time, or the URDF does not fit the configuration.
        """
        self.joints.begin()
        self._activity.begin()
        if not is_file(self._config.urdf):
            self._bus.listen(Channel(self._config.urdf, "std_msgs/msg/String", latched=True))
        self.wait()
        return self._chain()

    def wait(self) -> None:
        """Wait until the robot is there and fit; ArmError if it is not in time."""
        end = time.monotonic() + self._config.connect_timeout_s
        while problem := self._absent():
            if time.monotonic() > end:
                raise ArmError(problem)
            time.sleep(POLL_S)

    def read(self) -> Reading:
        """Return the newest state without waiting. Raises ArmError if a joint was never measured."""
        self.joints.look()
        measured = self.joints.of(self._config.joint_names)
        oldest = min(measured, key=lambda item: item.steady_ns)
        return Reading(oldest.stamp_ns, *arrays(measured), (time.monotonic_ns() - oldest.steady_ns) / 1e9)

    def problem(self, reading: Reading) -> str:
        """Return one sentence if the robot is silent, broken or not to be commanded; otherwise an empty text."""
        where = f"robot at {self._config.address}"
        if reading.age_s > self._config.state_timeout_s:
            topic = self._bus.full_name(self._config.joint_states)
            return f"{where} has been silent for {reading.age_s:.1f} s: no new state on {topic}: look at its ROS driver"
        if not np.isfinite(reading.joints).all():
            return f"{where} says {reading.joints.tolist()} rad of its joints; valid are finite numbers"
        inactive = self._activity.problem()
        return f"{where}: {inactive}" if inactive else ""

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
        if not is_file(config.urdf) and self._bus.latest(config.urdf) is None:
            return f"robot at {config.address}: no URDF came on {self._bus.full_name(config.urdf)}: {ADVICE}"
        return self.problem(self.read())

    def _chain(self) -> Chain:
        config = self._config
        if is_file(config.urdf):
            return read_chain_file(config.urdf, config.base_link, config.tool_link, config.address)
        heard = self._bus.latest(config.urdf)
        where = f"the URDF on {self._bus.full_name(config.urdf)}"
        if heard is None:
            raise ArmError(f"robot at {config.address}: no URDF came on {self._bus.full_name(config.urdf)}: {ADVICE}")
        return read_chain(heard.message.data, config.base_link, config.tool_link, where)


class ToolReader:
    """Where the tool is, from measured joints. One thread only.

    Args:
        config: of the robot.
        chain: of its arm.
    """

    def __init__(self, config: RosConfig, chain: Chain) -> None:
        self._kinematics = kinematics_of(config, chain)
        self._last: tuple[bytes, tuple[Array, Array, Array]] | None = None

    def pose(self, joints: Array) -> tuple[Array, Array, Array]:
        """Return position ``(3,)`` m, rotation ``(3, 3)`` and quaternion ``(4,)`` xyzw of the tool, base frame."""
        key = joints.tobytes()
        if self._last is None or self._last[0] != key:
            position, rotation = self._kinematics.forward(joints)
            self._last = key, (position, rotation, quaternion_from_matrix(rotation))
        return self._last[1]
