"""franky-sim's robot at a lower cost a step: the same numbers, read and written without a Python loop over joints."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import pinocchio
from franky_sim.base_simulator import InnerRobotState
from franky_sim.constants import FRANKA_HAND_FORCE_LIMIT, FRANKA_TORQUE_LIMITS_HIGH, FRANKA_TORQUE_LIMITS_LOW
from franky_sim.franka_robot_state import FrankaRobotState
from franky_sim.mujoco_simulator import FrankaMujocoRobot
from numpy.typing import NDArray

from bid_ros.robots.franka.tracked import TrackedState

_LOWEST: Final = np.array(FRANKA_TORQUE_LIMITS_LOW)
_HIGHEST: Final = np.array(FRANKA_TORQUE_LIMITS_HIGH)
# What franky-sim follows from step to step, by the field of the state that it becomes.
_FOLLOWED: Final = (
    *("q_d", "dq_d", "ddq_d", "dtau_J", "tau_J_d"),
    *("elbow_c", "delbow_c", "ddelbow_c", "O_dP_EE_d", "O_dP_EE_c", "O_ddP_EE_c"),
)
_POSES: Final = ("O_T_EE", "O_T_EE_d", "O_T_EE_c")

# The numbers of a state in the order of its packet, and how many of each.
_PACKED: Final = {
    **dict.fromkeys(("O_T_EE", "O_T_EE_d", "F_T_EE", "EE_T_K", "F_T_NE", "NE_T_EE"), 16),
    "m_ee": 0,
    "I_ee": 9,
    "F_x_Cee": 3,
    "m_load": 0,
    "I_load": 9,
    "F_x_Cload": 3,
    "elbow": 2,
    "elbow_d": 2,
    **dict.fromkeys(("tau_J", "tau_J_d", "dtau_J", "q", "q_d", "dq", "dq_d", "ddq_d"), 7),
    "joint_contact": 7,
    "cartesian_contact": 6,
    "joint_collision": 7,
    "cartesian_collision": 6,
    "tau_ext_hat_filtered": 7,
    "O_F_ext_hat_K": 6,
    "K_F_ext_hat_K": 6,
    "O_dP_EE_d": 6,
    "O_ddP_O": 3,
    "elbow_c": 2,
    "delbow_c": 2,
    "ddelbow_c": 2,
    "O_T_EE_c": 16,
    "O_dP_EE_c": 6,
    "O_ddP_EE_c": 6,
    "theta": 7,
    "dtheta": 7,
    "accelerometer_top": 18,
    "accelerometer_bottom": 18,
}
_PACKET: Final = struct.Struct(f"<{sum(max(1, count) for count in _PACKED.values())}f2B82BBf")


class FastFrankaState(FrankaRobotState):  # type: ignore[misc]  # franky-sim has no types
    """A FrankaRobotState that is made without assigning its 50 fields one by one."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the state with all of these fields."""
        state = object.__new__(cls)
        state.__dict__.update(values)
        return state

    def replace(self, **values: Any) -> Self:
        """Return a state with other values of some fields."""
        return self.of({**vars(self), **values})

    def pack_state(self) -> bytes:
        """Return the packet of this state: as the base class, by one format instead of fifty."""
        values, numbers = vars(self), list[float]()
        for name, count in _PACKED.items():
            if count:
                numbers += values[name][:count]
            else:
                numbers.append(values[name])
        modes = (self.motion_generator_mode, self.controller_mode)
        flags = (*self.errors, *self.reflex_reason)
        return _PACKET.pack(*numbers, *modes, *flags, self.robot_mode, self.control_command_success_rate)


class FastFrankaRobot(FrankaMujocoRobot):  # type: ignore[misc]  # franky-sim has no types
    """A FrankaMujocoRobot whose steps cost less.

    Most of the twin's time went into loops over seven joints, and into the fields of the state that is sent.
    """

    _fixed: dict[str, Any] | None
    _tracked_state_components: TrackedState

    @classmethod
    def take_over(cls, robot: FrankaMujocoRobot) -> None:
        """Make a robot, not yet attached to its scene, one of this class: the simulator builds only its own."""
        robot.__class__ = cls
        robot._fixed = None
        robot._tracked_state_components = TrackedState(robot.kinematics, robot.d_kinematics)

    def _attach_to_scene(self, model: Any, data: Any, prefix: str) -> None:
        super()._attach_to_scene(model, data, prefix)
        self._q, self._dq = _span(self._qpos_addrs), _span(self._dof_addrs)

    def _get_state(self) -> InnerRobotState:
        if self._data is None:
            return super()._get_state()
        return InnerRobotState(
            q=tuple(self._data.qpos[self._q].tolist()),
            dq=tuple(self._data.qvel[self._dq].tolist()),
            tau_j=tuple(self._applied_torques.tolist()),
        )

    @property
    def state(self) -> FrankaRobotState:
        """The state after the latest step. What a client sets, and so most of the state, is computed only once."""
        if self._fixed is None:
            self._fixed = dict(vars(super().state))
        parts, inner, values = self._tracked_state_components, self._get_state(), dict(self._fixed)
        for name in _FOLLOWED:
            values[name] = parts[name].value
        for name in _POSES:
            values[name] = parts[name].value.homogeneous.T.ravel().tolist()
        values.update(q=inner.q, dq=inner.dq, tau_J=inner.tau_j, tau_ext_hat_filtered=inner.tau_j)
        values.update(elbow=_elbow(inner.q), elbow_d=_elbow(values["q_d"]))
        return FastFrankaState.of(values)

    def follow(self, q: NDArray[np.float64], dq: NDArray[np.float64]) -> None:
        """Drive the joints along a path of their own: joints in rad and their speeds in rad/s for this step."""
        self._tracked_state_components["q_d"].set(self._BaseRobot__t, q.copy())
        # The base class damps against rest; ahead by what its damper holds back, it damps against the path's speed.
        self._joint_position_control(q + self.kv / self.kp * dq)

    def set_load(self, *values: Any) -> None:
        """As in the base class."""
        super().set_load(*values)
        self._fixed = None

    def set_NE_T_EE(self, ne_t_ee: tuple[float, ...]) -> None:
        """As in the base class."""
        super().set_NE_T_EE(ne_t_ee)
        self._fixed = None

    def set_EE_T_K(self, ee_t_k: tuple[float, ...]) -> None:
        """As in the base class."""
        super().set_EE_T_K(ee_t_k)
        self._fixed = None

    def torque_control(self, torques: Any, has_new_command: bool = True) -> None:
        """As in the base class: apply torques in Nm, and what holds the arm against gravity."""
        torques = np.minimum(np.maximum(torques, _LOWEST), _HIGHEST)
        self._tracked_state_components["tau_J_d"].set(self._BaseRobot__t, torques, has_new_command)
        gravity = pinocchio.computeGeneralizedGravity(self._model_of_arm, self._terms, self._data.qpos[self._q])
        self._torque_control(torques + gravity)

    def _joint_position_control(self, target_q: NDArray[np.float64]) -> None:
        q, dq, terms = self._data.qpos[self._q], self._data.qvel[self._dq], self._terms
        pinocchio.computeAllTerms(self._model_of_arm, terms, q, dq)
        self.torque_control(self.kp * (target_q - q) - self.kv * dq + (terms.nle - terms.g))

    @property
    def _model_of_arm(self) -> Any:
        return self._BaseRobot__model

    @property
    def _terms(self) -> Any:
        """What pinocchio computes of the arm; a new one after a client has set a load."""
        return self._BaseRobot__data

    def _torque_control(self, torques: NDArray[np.float64]) -> None:
        self._applied_torques = np.minimum(np.maximum(torques, _LOWEST), _HIGHEST)
        self._data.qfrc_applied[self._dq] = self._applied_torques

    def _post_step(self) -> None:
        self._tracked_state_components.finish(self._BaseRobot__t, self._get_state())
        self._BaseRobot__prev_t = self._BaseRobot__t
        self._BaseRobot__t += 0.001

    def _pre_step(self) -> None:
        if self._data is None:
            return
        limit = min(FRANKA_HAND_FORCE_LIMIT, self._hand_goal_force)
        for i, (at, dof) in enumerate(zip(self._finger_qpos_addrs, self._finger_dof_addrs, strict=True)):
            speed, kv = float(self._data.qvel[dof]), float(self._kv_hand[i])
            force = float(self._kp_hand[i]) * (self._hand_goal_width / 2 - float(self._data.qpos[at])) - kv * speed
            if abs(speed) > self._hand_goal_velocity and speed * force > 0:
                force = -kv * speed
            self._data.qfrc_applied[dof] = min(max(force, -limit), limit)


def _elbow(q: Sequence[float]) -> tuple[float, float]:
    return q[2], 1.0 if q[3] > 0.0 else -1.0


def _span(addresses: Sequence[int]) -> slice:
    """Return where consecutive addresses lie in an array."""
    first, last = addresses[0], addresses[-1] + 1
    if list(addresses) != list(range(first, last)):
        raise ValueError(f"addresses of the joints are {list(addresses)}; valid are consecutive ones")
    return slice(first, last)
