"""Configuration of a UR arm: address, servo loop, limits, payload, gripper."""

import math
from typing import Annotated, Final, Literal

from pydantic import Field

from bid_ros.control.spatial import turn_between
from bid_ros.core.errors import ArmError
from bid_ros.core.settings import BY_CALLER, Quaternion, ToolPlace, settings
from bid_ros.robots.base import Dynamics
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.robots.robotiq.driver import RobotiqConfig

JOINT_NAMES: Final = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
JOINTS: Final = len(JOINT_NAMES)
MOST_JOINT: Final = math.radians(363)  # what a UR's own safety limits allow at most
Joints = Annotated[
    tuple[Annotated[float, Field(ge=-MOST_JOINT, le=MOST_JOINT)], ...], Field(min_length=JOINTS, max_length=JOINTS)
]


# The loop waits for answers of the controller, s.
ANSWER_S: Final = 0.1


@settings(error=ArmError)
class UrConfig:
    """A UR5 (CB3) or UR5e (e-Series), or the twin of one.

    Attributes:
        address: host name or IP address of the controller.
        twin: the address is a twin.
        model: ``ur5e`` or ``ur5``. Its nominal kinematics check set-points. The controller moves the arm with its own.
        joint_prefix: prefix of the joint names.
        rate_hz: set-points a second for the robot: 125, 500 (e-Series only), or 0 for the controller's own rate.
        lookahead_time_s: lookahead of ``servoj``, s. Longer is smoother, and the arm lags about that much.
        gain: proportional gain of ``servoj``. Higher follows closer and shakes sooner.
        max_speed: largest speed of the tool, m/s, whatever the set-points do. Keep it above the task's limit. Otherwise
            the arm never catches up with its set-points.
        max_acceleration: largest acceleration of the tool, m/s^2. Keep it above the task's limit too.
        max_turn_rate: largest turn rate of the tool, rad/s.
        max_turn_acceleration: largest turn acceleration of the tool, rad/s^2.
        max_joint_speed: largest joint speed, rad/s. A set-point that needs more, near a singular posture, is refused.
        max_joint_acceleration: largest joint acceleration where joints are commanded, rad/s^2. Chunks of joints may use
            four fifths of it and of max_joint_speed, so that the arm catches up with its set-points.
        joint_min, joint_max: limits of the joints, rad. A set-point or joint target outside is refused.
        joint_deceleration: deceleration when a joint motion is stopped, rad/s^2.
        dynamics: share of 3.14 rad/s and 10 rad/s^2 for joint motions. The jerk is ignored: a UR takes none.
        silence_timeout_s: s without a new set-point after which a moving arm is stopped. An arm at rest may wait.
        extrapolate_s: s for which a set-point is extrapolated with its velocity, two or three periods of the sender.
            Then it is held. In that time the tool may leave the workspace: by 9 mm at 0.3 m/s.
        watchdog_hz: the controller stops its program when it hears from us less often than this.
        payload_mass: mass at the flange, gripper included, kg.
        payload_center: centre of mass of the payload from the flange, m.
        tool_offset, tool_quaternion: pose of the tool frame in the flange's frame, m and xyzw.
        gripper: settings of a Robotiq 2F-85. None: no gripper.
        gripper_thresholds: widths that mean open and closed.
        connect_timeout_s: s to wait until the robot answers and starts its program.
        state_timeout_s: age in s of the newest state, or of a set-point that the robot has not reported back, at which
            the arm counts as lost.

    Raises:
        ArmError: a value is out of its range.
    """

    address: Annotated[str, BY_CALLER]
    twin: Annotated[bool, BY_CALLER] = False
    model: Literal["ur5e", "ur5"] = "ur5e"
    joint_prefix: str = ""
    rate_hz: Literal[0, 125, 500] = 0
    lookahead_time_s: Annotated[float, Field(ge=0.03, le=0.2)] = 0.1
    gain: Annotated[float, Field(ge=100, le=2000)] = 300.0
    max_speed: Annotated[float, Field(ge=0.01, le=2)] = 0.6
    max_acceleration: Annotated[float, Field(ge=0.1, le=20)] = 6.0
    max_turn_rate: Annotated[float, Field(ge=0.01, le=3)] = 1.8
    max_turn_acceleration: Annotated[float, Field(ge=0.1, le=40)] = 15.0
    max_joint_speed: Annotated[float, Field(ge=0.1, le=math.pi)] = 2.5
    max_joint_acceleration: Annotated[float, Field(ge=0.5, le=40)] = 12.0
    joint_min: Joints = (-2 * math.pi,) * JOINTS
    joint_max: Joints = (2 * math.pi,) * JOINTS
    joint_deceleration: Annotated[float, Field(ge=1, le=20)] = 6.0
    dynamics: Dynamics = Dynamics(0.1, 0.1, 1.0)
    silence_timeout_s: Annotated[float, Field(ge=0.02, le=0.2)] = 0.12
    extrapolate_s: Annotated[float, Field(ge=0, le=0.1)] = 0.03
    # Between two of its commands the robot is silent for up to 40 ms at 125 Hz.
    watchdog_hz: Annotated[float, Field(ge=5, le=20)] = 10.0
    payload_mass: Annotated[float, Field(ge=0, le=5)] = 0.0
    payload_center: ToolPlace = (0.0, 0.0, 0.0)
    tool_offset: ToolPlace = (0.0, 0.0, 0.0)
    tool_quaternion: Quaternion = (0.0, 0.0, 0.0, 1.0)
    gripper: RobotiqConfig | None = RobotiqConfig()
    gripper_thresholds: GripperThresholds = GripperThresholds(0.045, 0.06)
    connect_timeout_s: Annotated[float, Field(ge=0.5, le=30)] = 10.0
    # A set-point is reported back after up to 24 ms at 125 Hz.
    state_timeout_s: Annotated[float, Field(ge=0.1, le=0.5)] = 0.15

    @property
    def tool(self) -> tuple[float, ...]:
        """Pose of the tool frame in the flange's frame, ``(6,)``: x y z in m and a rotation vector in rad."""
        x, y, z, w = self.tool_quaternion
        return (*self.tool_offset, *turn_between((0.0, 0.0, 0.0, 1.0), (x, y, z, w)))

    @property
    def stuck_s(self) -> float:
        """Time in s after which a controller that has not answered a command counts as lost."""
        return self.state_timeout_s + ANSWER_S

    def __post_init__(self) -> None:
        if not self.address:
            raise ArmError("ur: address is empty; valid is the host name or IP address of the robot or its twin")
        if self.gripper:
            self.gripper_thresholds.check_reached(self.gripper.open_width)
        for low, high in zip(self.joint_min, self.joint_max, strict=True):
            if not low < high:
                raise ArmError(f"ur: a joint's limits are {low} and {high}; valid is joint_min < joint_max")
