"""The connection to a robot that is driven through ROS: what must be there, its newest state, and what is wrong.

The controller manager of ros2_control tells whether the controller that takes our commands is active. Source:
ros2_control, "controller_manager": topic ``~/activity`` (controller_manager_msgs/ControllerManagerActivity) of 4.28 and
later, service ``~/list_controllers`` (controller_manager_msgs/ListControllers) of all. An answer with the fields of
another release does not reach us.

A connected robot consists of what says where its tool is, what drives it, its limits and its gripper.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.robots.bus import Bus, Channel, Request
from bid_ros.robots.gripper import GripperThread
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.follower import SetpointFollower, joint_follower
from bid_ros.robots.ros.gripper import RosGripper
from bid_ros.robots.ros.joints import JointReader, JointReading
from bid_ros.robots.ros.kinematics import kinematics_of
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.motion import MotionExecutor, joint_motion
from bid_ros.robots.ros.tool import ModelTool, Pose, ToolSource, TransformTool
from bid_ros.robots.ros.tool_stream import tool_follower
from bid_ros.robots.ros.urdf import UrdfChain, is_file, read_chain, read_chain_file

ACTIVE: Final = "active"
TOPIC_TYPE: Final = "controller_manager_msgs/msg/ControllerManagerActivity"
SERVICE_TYPE: Final = "controller_manager_msgs/srv/ListControllers"
ASK_S: Final = 0.5  # between two questions to the service
FOUND_S: Final = 2.0  # within which a service is found that is there
SILENT_S: Final = 3.0  # after which an answer says nothing any more

States = dict[str, str]
"""Labels of the controllers' states by name."""
POLL_S: Final = 0.01
ADVICE: Final = "check the address, the namespace, ROS_DOMAIN_ID and that the robot's ROS driver runs"
# Largest speed of a joint, rad/s, at which joints and transforms are held against each other: the transforms are a
# little older, and what the joints went since would be taken for an error of the URDF for as long as they are followed.
STILL: Final = 0.05


class Activity:
    """Looks at the newest message of the controller manager; without any, asks its service again and again.

    A forward position controller takes numbers without names. So the service is also asked once in which order.

    Args:
        bus: of the robot.
        config: names the controller, the topic and the service. Without a controller nobody is asked.
    """

    def __init__(self, bus: Bus, config: RosConfig) -> None:
        self._bus, self._controller = bus, config.controller
        self._topic, self._service = config.activity, config.list_controllers
        self._request: Request | None = None
        self._asked_s = self._answered_s = self._begun_s = 0.0  # steady times
        self._listed: States | None = None
        forward = config.command == "forward_position"
        self._wanted = [f"{name}/position" for name in config.joint_names] if forward else []
        self._interfaces: list[str] | None = None  # that the controller commands, in its order

    def begin(self) -> None:
        """Begin to listen, and forget what was told before. Raises ArmError if the package of the types is absent."""
        self._request, self._listed, self._interfaces, self._asked_s = None, None, None, 0.0
        self._begun_s = time.monotonic()
        if not self._controller:
            return
        self._bus.offer(Channel(self._service, SERVICE_TYPE))
        with contextlib.suppress(ArmError):  # before 4.28 there is the service, but no such message
            self._bus.listen(Channel(self._topic, TOPIC_TYPE, latched=True))

    def problem(self) -> str:
        """Return one sentence if the controller is not known to be active; otherwise an empty text. Does not wait."""
        if not self._controller:
            return ""
        states = self._states()
        if states is None:
            where = f"{self._bus.full_name(self._topic)}, and {self._bus.full_name(self._service)} did not answer"
            return f"nothing came on {where}: one of them tells whether controller '{self._controller}' is active"
        if self._controller not in states:
            valid = ", ".join(states) or "none"
            return f"the controller manager has no controller '{self._controller}'; valid are {valid}"
        label = states[self._controller]
        if label == ACTIVE:
            return self._misordered() if self._wanted else ""
        active = ", ".join(name for name, state in states.items() if state == ACTIVE) or "none"
        advice = f"activate it with: ros2 control switch_controllers --activate {self._controller}"
        return f"controller '{self._controller}' is {label}, active are {active}; {advice}"

    def _misordered(self) -> str:
        """Return one sentence if numbers without names would reach other joints than meant, else nothing."""
        if self._interfaces is None:
            self._ask()
        if self._interfaces is None:
            if self._bus.partners(self._service) or time.monotonic() - self._begun_s < FOUND_S:
                service = self._bus.full_name(self._service)
                return f"{service} did not answer: it tells in which order controller '{self._controller}' takes joints"
            self._interfaces = []  # nobody tells it
        if not self._interfaces or self._interfaces == self._wanted:
            return ""
        return (
            f"controller '{self._controller}' takes {', '.join(self._interfaces)}; valid is the order of joint_names, "
            f"{', '.join(self._wanted)}: set its parameter joints"
        )

    def _states(self) -> States | None:
        """Return what was told last; None if nothing was, or too long ago."""
        heard = self._bus.latest(self._topic)
        if heard is not None:
            return {item.name: item.state.label for item in heard.message.controllers}
        self._ask()
        return self._listed if time.monotonic() - self._answered_s < SILENT_S else None

    def _ask(self) -> None:
        """Take the service's answer, and ask it again after a while. Does not wait."""
        now_s = time.monotonic()
        answer = None if self._request is None else self._request.answer()
        if answer is not None:
            self._listed, self._answered_s, self._request = {}, now_s, None
            self._listed.update((item.name, item.state) for item in answer.controller)
            own = [item for item in answer.controller if item.name == self._controller]
            self._interfaces = [name for item in own for name in getattr(item, "required_command_interfaces", ())]
        if now_s - self._asked_s > ASK_S and self._bus.partners(self._service):
            self._request, self._asked_s = self._bus.ask(self._service), now_s


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
                named = self.joints.known() and self.joints.missing(self._names)
                raise (ArmError if named else RobotAwayError)(problem)
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
        other = self.joints.jumped(self._config.joint_names) or lost or self._activity.problem()
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
        assert heard is not None, "it was waited for"
        where = f"the URDF on {self._bus.full_name(config.urdf)}"
        return read_chain(heard.message.data, config.base_link, config.tool_link, where)


@dataclass(frozen=True)
class Connection:
    """A connected robot.

    Attributes:
        tool: says where the tool is.
        follower: drives the arm.
        motion: carries joint motions out; None: its controller takes no joints.
        limits: of the joints; None: the URDF is not needed, and the controller has limits of its own.
        hand: its gripper; None: it has none.
    """

    tool: ToolSource
    follower: SetpointFollower
    motion: MotionExecutor | None
    limits: DriverLimits | None
    hand: GripperThread | None


def connected(config: RosConfig, bus: Bus, link: RosLink, lose: Callable[[str], None]) -> Connection:
    """Wait for a robot, and return what it consists of.

    Args:
        config: of the robot.
        bus: of the robot.
        link: to its topics.
        lose: is told why the gripper failed, from the gripper's thread.

    Raises:
        ArmError: something is not there in time, or does not fit the configuration.
    """
    chain = link.open()
    tool = link.tool(chain)

    def measured() -> Pose:
        found = tool.pose(link.read())
        return found.position, found.rotation

    def measured_still() -> Pose:
        speed = float(np.abs(link.read().speeds).max())
        if not speed <= STILL:
            what = f"robot at {config.address}: a joint moves at {speed:.2f} rad/s"
            raise ArmError(
                f"{what}; valid at the start is up to {STILL:g}, so that joints and transforms fit: let it rest"
            )
        return measured()

    limits = None if chain is None else DriverLimits.of(config, chain)
    if config.by_joints and chain is not None and limits is not None:
        joints = joint_follower(config, bus, chain, limits, measured_still if config.tool_pose == "tf" else None)
        follower: SetpointFollower = joints
        motion = joint_motion(config, bus, joints)
    else:
        follower, motion = tool_follower(config, bus, measured), None
    return Connection(tool, follower, motion, limits, _gripper(config, bus, link, lose))


def _gripper(config: RosConfig, bus: Bus, link: RosLink, lose: Callable[[str], None]) -> GripperThread | None:
    if config.gripper is None:
        return None
    device = RosGripper(config.gripper, bus, link.joints, config.address)
    device.begin()
    hand = GripperThread(device, config.gripper_thresholds, (ArmError,), lambda error: lose(str(error)))
    hand.start()
    return hand
