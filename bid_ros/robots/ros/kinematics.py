"""Forward and inverse kinematics of a chain of joints over Pinocchio.

The inverse is a damped least-squares iteration from a near posture. It stays on that posture's branch, as an arm does
that follows a stream.

Sources: Carpentier et al., "The Pinocchio C++ library", SII 2019 (kinematics, logarithm of a pose); Nakamura and
Hanafusa, "Inverse kinematic solutions with singularity robustness", 1986, equation 19 (damping); Liegeois, "Automatic
supervisory control", 1977, equation 6 (posture in the null space).

Also their model for tasks that command joints, with the limits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pinocchio

from bid_ros.control.arm_model import ArmModel, JointLimits
from bid_ros.control.chain import damped_solution
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.robots.ros.config import JOINT_COMMANDS, RosConfig
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.twin.description import arm_urdf
from bid_ros.robots.ros.urdf import (
    UrdfChain,
    has_shapes,
    is_file,
    link_shapes,
    read_chain,
    read_chain_file,
    serial_chain,
)

ITERATIONS: Final = 20
DAMPING: Final = 1e-6  # of the squared Jacobian; small against all but a singular posture
STEP: Final = 0.2  # rad, largest change of a joint in an iteration
CLOSE: Final = 1e-6  # m and rad: the iteration ends
POSTURE: Final = 0.02  # share of the way towards the posture that is gone at once, at most
SHARE: Final = 0.8  # of the driver's limits that chunks may use: with the rest it makes up for what came late
SPARE: Final = 0.005  # rad of a limit that rounding may take
SAVE: Final = "ros2 param get --hide-type /robot_state_publisher robot_description > arm.urdf"


@dataclass(frozen=True)
class Reached:
    """Where the iteration ended.

    Attributes:
        joints: ``(n,)`` rad.
        off_m, off_rad: distance of the tool from the wanted pose.
    """

    joints: Array
    off_m: float
    off_rad: float


class ChainKinematics:
    """Kinematics of a chain with a tool at its end. One thread only.

    Args:
        chain: joints of the URDF.
        tool_offset: ``(3,)`` m, of the tool frame in the chain's last link.
        tool_quaternion: ``(4,)`` xyzw, its turn.
        rotation_weight: m per rad: how much a wrong turn counts against a wrong place. An arm of fewer than six joints
            wants a small one.

    Attributes:
        joints: number of joints.
    """

    def __init__(
        self,
        chain: UrdfChain,
        tool_offset: Sequence[float] = (0.0, 0.0, 0.0),
        tool_quaternion: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        rotation_weight: float = 1.0,
    ) -> None:
        self.joints = len(chain.joint_names)
        self._model: Any = chain.model.copy()
        tool = pinocchio.SE3(matrix_from_quaternion(tool_quaternion), np.asarray(tool_offset, dtype=np.float64))
        last = self._model.frames[self._model.nframes - 1]  # the chain ends in the tool link
        frame = pinocchio.Frame("bid_tool", last.parentJoint, last.placement * tool, pinocchio.FrameType.OP_FRAME)
        self._frame: int = self._model.addFrame(frame, False)
        self._last_link, self._tool = last.placement, tool
        self._data: Any = self._model.createData()
        self._weights = np.array([1.0] * 3 + [rotation_weight] * 3)

    def forward(self, joints: Array) -> tuple[Array, Array]:
        """Return position ``(3,)`` m and rotation ``(3, 3)`` of the tool in the base link at ``(n,)`` rad."""
        pose = self._pose(joints)
        return np.array(pose.translation), np.array(pose.rotation)

    def fit(self, joints: Array, position: Array, rotation: Array) -> tuple[float, float]:
        """Place the tool in its link so that joints ``(n,)`` rad have it at a pose that was measured otherwise.

        It makes up for what the URDF has wrong there, and most of it elsewhere.

        Args:
            joints: ``(n,)`` rad.
            position: ``(3,)`` m, in the base link.
            rotation: ``(3, 3)`` tool to base link.

        Returns:
            How far that is from where the URDF has the tool, m and rad.
        """
        frame = self._model.frames[self._frame]
        frame.placement = self._last_link * self._tool
        wanted, own = pinocchio.SE3(rotation, position), self._pose(joints)
        frame.placement = frame.placement * own.actInv(wanted)
        turn = pinocchio.log3(own.rotation.T @ rotation)
        return float(np.linalg.norm(position - own.translation)), float(np.linalg.norm(turn))

    def jacobian(self, joints: Array, own: bool = False) -> Array:
        """Return ``(6, n)``: joint speeds in rad/s to the tool's velocity in m/s and rad/s, along base or own axes."""
        frames = pinocchio.ReferenceFrame
        axes = frames.LOCAL if own else frames.LOCAL_WORLD_ALIGNED
        found: Array = pinocchio.computeFrameJacobian(self._model, self._data, joints, self._frame, axes)
        return found

    def speeds(self, joints: Array, twist: Array) -> Array:
        """Return the joint speeds ``(n,)`` rad/s that move the tool with a twist ``(6,)``, m/s and rad/s, base axes."""
        weighted = self._weights[:, None] * self.jacobian(joints)
        return damped_solution(weighted, self._weights * twist, DAMPING)

    def inverse(
        self,
        position: Array,
        rotation: Array,
        near: Array,
        posture: Array | None = None,
        most: Array | float = math.inf,
    ) -> Reached:
        """Return the joints near ``near`` that put the tool at a pose.

        Args:
            position: ``(3,)`` m, in the base link.
            rotation: ``(3, 3)`` tool to base link.
            near: ``(n,)`` rad, where the iteration begins.
            posture: ``(n,)`` rad, towards which an arm of more than six joints is pulled once; None: it stays near.
            most: rad, of every joint or ``(n,)``: how far it is pulled at most.
        """
        wanted, joints = pinocchio.SE3(rotation, position), np.array(near, dtype=np.float64)
        error = self._error(wanted, joints)
        if posture is not None and self.joints > 6 and float(np.abs(error).max()) >= CLOSE:
            joints += self._pull(joints, posture - joints, most)
            error = self._error(wanted, joints)
        for _ in range(ITERATIONS):
            if float(np.abs(error).max()) < CLOSE:
                break
            weighted = self._weights[:, None] * self.jacobian(joints, own=True)
            step = damped_solution(weighted, self._weights * error, DAMPING)
            joints += step * min(1.0, STEP / max(float(np.abs(step).max()), 1e-12))
            error = self._error(wanted, joints)
        return Reached(joints, float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:])))

    def _pull(self, joints: Array, way: Array, most: Array | float) -> Array:
        """Return a small part ``(n,)`` rad of a way, under which the tool stands."""
        jacobian = self.jacobian(joints, own=True)
        free: Array = way - damped_solution(jacobian, jacobian @ way, DAMPING)
        return min(POSTURE, float((most / np.maximum(np.abs(free), 1e-12)).min())) * free

    def _pose(self, joints: Array) -> Any:
        pinocchio.forwardKinematics(self._model, self._data, np.asarray(joints, dtype=np.float64))
        return pinocchio.updateFramePlacement(self._model, self._data, self._frame)

    def _error(self, wanted: Any, joints: Array) -> Array:
        """Return the motion ``(6,)`` from the tool to the wanted pose, in the tool's frame, m and rad."""
        error: Array = pinocchio.log6(self._pose(joints).actInv(wanted)).vector
        return error


def kinematics_of(config: RosConfig, chain: UrdfChain) -> ChainKinematics:
    """Return the kinematics of a robot's arm and tool."""
    return ChainKinematics(chain, config.tool_offset, config.tool_quaternion, config.rotation_weight)


def arm_model(config: RosConfig) -> ArmModel:
    """Return kinematics and limits of the joints, with the tool of the configuration.

    The limits are those that the driver keeps: :data:`SHARE` of speed and acceleration. Those of position are a little
    narrower, so that no set-point of a chunk is one that the driver refuses.

    Raises:
        ArmError: the robot is not commanded by its joints, no file has its URDF, or a limit is not known.
    """
    if not config.by_joints:
        what = f"ros: command is {config.command}, which moves the tool"
        raise ArmError(f"{what}; valid for a task that commands joints are {', '.join(JOINT_COMMANDS)}")
    chain = _chain(config)
    driver = DriverLimits.of(config, chain)
    limits = JointLimits(
        driver.names,
        _tuple(driver.lower),
        _tuple(driver.upper),
        _tuple(SHARE * driver.speed),
        (SHARE * driver.acceleration,) * len(driver.names),
    ).inside(margin(config, float(driver.speed.max())))
    tool = serial_chain(chain).with_tool(config.tool_offset, matrix_from_quaternion(config.tool_quaternion))
    shapes = partial(link_shapes, chain) if has_shapes(chain) else None
    return ArmModel(tool, limits, config.home or (0.0,) * len(driver.names), shapes)


def margin(config: RosConfig, speed: float) -> float:
    """Return how far inside the driver's limits those of chunks are, rad.

    A chunk's joint may come to rest at its limit with :data:`SHARE` of the acceleration. The driver asks that the joint
    could rest inside its own limit after it went on for ``ahead_s``, with all of the acceleration. This is the most
    that the one needs beyond the other, at any speed.

    Args:
        config: of the robot.
        speed: the largest that the driver allows any joint, rad/s.
    """
    ahead_s, fastest = config.reach_s, SHARE * speed
    less = (1 / SHARE - 1) / (2 * config.joint_acceleration)  # s^2/rad: how much sooner the driver rests, by speed^2
    worst = min(fastest, ahead_s / (2 * less))
    return SPARE + worst * ahead_s - less * worst**2


def _chain(config: RosConfig) -> UrdfChain:
    if is_file(config.urdf):
        return read_chain_file(config.urdf, config.base_link, config.tool_link, config.address)
    if config.twin:
        return read_chain(arm_urdf(), config.base_link, config.tool_link, "the twin's URDF")
    what = f"ros: urdf is the topic {config.urdf}"
    raise ArmError(f"{what}; valid for a task that commands joints is a file: {SAVE}, then urdf: arm.urdf")


def _tuple(values: Sequence[float] | Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
