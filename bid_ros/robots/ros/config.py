"""Configuration of a robot that is driven through ROS: topics, joints, limits, gripper."""

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from bid_ros.core.errors import ArmError
from bid_ros.core.feature import SOURCE
from bid_ros.core.settings import BY_CALLER, Angle, Quaternion, Share, ToolPlace, settings
from bid_ros.robots.base import Dynamics
from bid_ros.robots.gripper import GripperThresholds

MOST_JOINTS: Final = 12
Names = Annotated[tuple[str, ...], Field(min_length=1, max_length=MOST_JOINTS)]
Angles = Annotated[tuple[Angle, ...], Field(max_length=MOST_JOINTS)]
# Faster than arms turn: what is beyond is in degrees a second.
Speeds = Annotated[tuple[Annotated[float, Field(gt=0, le=10)], ...], Field(max_length=MOST_JOINTS)]
JOINT_COMMANDS: Final = ("joint_trajectory", "forward_position")


@settings(error=ArmError)
class RosGripperConfig:
    """A gripper with one joint whose position is linear in the opening.

    Attributes:
        interface: ``action`` (control_msgs/action/GripperCommand), ``parallel_action`` (its successor,
            ParallelGripperCommand) or ``topic`` (std_msgs/msg/Float64MultiArray with one position).
        name: of the action or topic.
        joint: its name in the joint states.
        open_position, closed_position: of the joint, rad or m.
        open_width: opening at ``open_position``, m. At ``closed_position`` it is 0.
        max_effort: that an action may use, N or Nm; 0: the gripper's own.
        fingers: names of the finger joints for those who draw the robot; each has half of the opening.
    """

    name: str
    joint: str
    open_position: float
    closed_position: float
    open_width: Annotated[float, Field(ge=0.01, le=0.3)]
    interface: Literal["action", "parallel_action", "topic"] = "action"
    max_effort: Annotated[float, Field(ge=0, le=500)] = 0.0
    fingers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.open_position == self.closed_position:
            raise ArmError(
                f"gripper: open_position and closed_position are both {self.open_position}; valid are two positions"
            )


@settings(error=ArmError)
class RosConfig:
    """A robot with a ROS 2 driver, or its twin.

    A name of a topic without a leading slash is relative to the namespace of the system.

    Attributes:
        address: of the robot, for the sentences that name it. Its topics are found by their names.
        twin: the address is a twin.
        joint_names: of the arm, base to tool.
        base_link, tool_link: links of the URDF. Positions count from ``base_link``.
        tool_offset, tool_quaternion: pose of the tool frame in ``tool_link``, m and xyzw.
        urdf: topic of the URDF, or path of a file that ends in ``.urdf``.
        joint_states: topic of the measured joints.
        tool_pose: what says where the tool is: ``urdf`` (forward kinematics of the measured joints) or ``tf`` (the
            robot's own transforms, for one whose kinematics are calibrated or not in a URDF).
        tf_base, tf_tool: frames of the transforms that are ``base_link`` and ``tool_link``; empty: the same names.
        tf, tf_static: topics of the transforms.
        command: what the arm is driven with: ``joint_trajectory`` (JointTrajectory), ``forward_position``
            (Float64MultiArray of joint positions), ``pose`` (PoseStamped) or ``twist`` (TwistStamped).
        command_topic: topic of the commands.
        command_frame: frame of poses and twists; empty: ``base_link``.
        motion: how ``move_to_joints`` is sent; ``bid up`` does not use it. ``topic``: streamed, as set-points are; the
            arm brakes if this computer dies. ``action``: as one goal of FollowJointTrajectory, beside
            ``command_topic``, with ``command: joint_trajectory`` only; the controller says why it failed, but goes on
            to its end if this computer dies.
        controller: name of the controller that must be active; empty: nobody is asked.
        activity: topic of the controller manager that tells which controllers are active.
        list_controllers: its service that tells the same when it is asked, for releases without that topic.
        joint_min, joint_max: limits of the joints, rad. Empty: those of the URDF.
        joint_speed: largest joint speeds, rad/s. Empty: those of the URDF.
        joint_acceleration: largest joint acceleration, rad/s^2: of stops and joint motions.
        home: posture in rad towards which an arm of more than six joints is pulled. Empty: none.
        dynamics: share of ``joint_speed`` and ``joint_acceleration`` for joint motions. The jerk is ignored.
        ahead_s: s for which a joint trajectory goes on before it brakes. It spans a few set-points, no more.
        stamped: a trajectory begins at the time of its message, which both computers' clocks must agree on. False: when
            it arrives, for clocks that differ, such as a simulator's.
        rotation_weight: m per rad: how much a wrong turn of the tool counts against a wrong place.
        rotation_tolerance: largest difference of the turn from the set-point's, rad. pi: an arm that cannot turn its
            tool freely.
        max_lag: distance of a joint from where it was sent, rad, at which the arm counts as not following.
        lag_timeout_s: s for which it may be that far.
        pose_gain: 1/s, how fast a twist makes up for a wrong pose.
        twist_lag_s: s after which the tool is where a twist sends it: what ``bid episodes motion`` says of a run with
            ``pose_gain: 0``.
        gripper: its settings. None: no gripper.
        gripper_thresholds: widths that mean open and closed.
        connect_timeout_s: s to wait until the robot's topics are there.
        state_timeout_s: s without a new joint state, or transform of the tool, at which the arm counts as lost.

    Raises:
        ArmError: a value is out of its range.
    """

    address: Annotated[str, BY_CALLER]
    joint_names: Names
    twin: Annotated[bool, BY_CALLER] = False
    base_link: str = "base_link"
    tool_link: str = "tool0"
    tool_offset: ToolPlace = (0.0, 0.0, 0.0)
    tool_quaternion: Quaternion = (0.0, 0.0, 0.0, 1.0)
    urdf: str = "robot_description"
    joint_states: str = "joint_states"
    tool_pose: Literal["urdf", "tf"] = "urdf"
    tf_base: str = ""
    tf_tool: str = ""
    tf: str = "/tf"
    tf_static: str = "/tf_static"
    command: Literal["joint_trajectory", "forward_position", "pose", "twist"] = "joint_trajectory"
    command_topic: str = "joint_trajectory_controller/joint_trajectory"
    command_frame: str = ""
    motion: Literal["topic", "action"] = "topic"
    controller: str = "joint_trajectory_controller"
    activity: str = "controller_manager/activity"
    list_controllers: str = "controller_manager/list_controllers"
    joint_min: Angles = ()
    joint_max: Angles = ()
    joint_speed: Speeds = ()
    joint_acceleration: Annotated[float, Field(ge=0.1, le=100)] = 5.0
    home: Angles = ()
    dynamics: Dynamics = Dynamics(0.1, 0.1, 1.0)
    ahead_s: Annotated[float, Field(ge=0.01, le=0.2)] = 0.04
    stamped: bool = True
    rotation_weight: Share = 1.0
    rotation_tolerance: Annotated[float, Field(gt=0, le=3.142)] = 0.02
    max_lag: Annotated[float, Field(ge=0.01, le=3)] = 0.2
    lag_timeout_s: Annotated[float, Field(ge=0.05, le=2)] = 0.3
    pose_gain: Annotated[float, Field(ge=0, le=20)] = 4.0
    twist_lag_s: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    gripper: RosGripperConfig | None = None
    gripper_thresholds: GripperThresholds = GripperThresholds(0.03, 0.06)
    connect_timeout_s: Annotated[float, Field(ge=0.1, le=30)] = 5.0
    state_timeout_s: Annotated[float, Field(ge=0.02, le=1)] = 0.2

    def __post_init__(self) -> None:
        if not self.address:
            raise ArmError("ros: address is empty; valid is a name of the robot, such as its host name")
        if len(set(self.joint_names)) < len(self.joint_names):
            raise ArmError(f"ros: joint_names are {', '.join(self.joint_names)}; valid are names that differ")
        for name in ("joint_min", "joint_max", "joint_speed", "home"):
            values = getattr(self, name)
            if values and len(values) != len(self.joint_names):
                raise ArmError(
                    f"ros: {name} has {len(values)} numbers; valid are {len(self.joint_names)}, one a joint, or none"
                )
        for low, high in zip(self.joint_min, self.joint_max, strict=bool(self.joint_min and self.joint_max)):
            if not low < high:
                raise ArmError(f"ros: a joint's limits are {low} and {high}; valid is joint_min < joint_max")
        if self.gripper:
            self.gripper_thresholds.check_reached(self.gripper.open_width)
        self._check_topics()
        self._check_ignored()
        base, tool = self.tool_frames
        if self.tool_pose == "tf" and base == tool:
            raise ArmError(f"ros: base and tool are both the frame '{base}'; valid are tf_base and tf_tool that differ")

    def _check_topics(self) -> None:
        """Raise ArmError for a name that is no topic's."""
        pattern, valid = SOURCE["topic"]
        used = ["joint_states", "command_topic"]
        used += ["activity", "list_controllers"] if self.controller else []
        used += ["tf", "tf_static"] if self.tool_pose == "tf" else []
        used += ["urdf"] if self.needs_urdf and not self.urdf.endswith(".urdf") else []
        named = {name: getattr(self, name) for name in used} | (
            {"gripper.name": self.gripper.name} if self.gripper else {}
        )
        for name, topic in named.items():
            if not re.fullmatch(pattern, topic, re.ASCII):
                more = ", or a file that ends in .urdf" if name == "urdf" else ""
                raise ArmError(f"ros: {name} is '{topic}'; valid is {valid}{more}")

    def _check_ignored(self) -> None:
        """Raise ArmError for a field that would have no effect beside the others."""
        if self.motion == "action" and self.command != "joint_trajectory":
            raise ArmError(
                f"ros: motion is 'action' and command '{self.command}'; valid is motion: action with command: "
                "joint_trajectory"
            )
        if self.twist_lag_s and self.command != "twist":
            raise ArmError(
                f"ros: twist_lag_s is {self.twist_lag_s:g} and command '{self.command}'; valid is 0 but for command: "
                "twist"
            )
        if (self.tf_base or self.tf_tool) and self.tool_pose != "tf":
            raise ArmError(
                f"ros: tf_base and tf_tool are '{self.tf_base}' and '{self.tf_tool}'; valid with tool_pose: urdf are "
                "empty ones: set tool_pose: tf, or remove them"
            )

    @property
    def by_joints(self) -> bool:
        """Whether the arm is driven with joint positions, which need inverse kinematics."""
        return self.command in JOINT_COMMANDS

    @property
    def motion_action(self) -> str:
        """Name of the action that takes joint motions; empty: they are streamed."""
        if self.motion != "action":
            return ""
        return "/".join([*self.command_topic.split("/")[:-1], "follow_joint_trajectory"])

    @property
    def needs_urdf(self) -> bool:
        """Whether it cannot be driven without a URDF."""
        return self.by_joints or self.tool_pose == "urdf"

    @property
    def tool_frames(self) -> tuple[str, str]:
        """Names of base and tool link among the transforms."""
        return (self.tf_base or self.base_link).lstrip("/"), (self.tf_tool or self.tool_link).lstrip("/")

    def check_not_heard(self, frame: str) -> None:
        """Raise ArmError if transforms of a frame that bid_ros publishes itself would say where the tool is.

        Args:
            frame: such a frame, on the topic :attr:`tf`.
        """
        if self.tool_pose == "tf" and frame in self.tool_frames:
            raise ArmError(
                f"ros: tf_base and tf_tool are '{self.tool_frames[0]}' and '{self.tool_frames[1]}', and bid_ros itself "
                f"publishes frame '{frame}' on {self.tf}, as the task's tool_frame; valid are two names that differ"
            )

    @property
    def reach_s(self) -> float:
        """S for which joints go on after a set-point before they brake by themselves."""
        return 0.0 if self.command == "forward_position" else self.ahead_s
