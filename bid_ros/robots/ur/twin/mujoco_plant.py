"""An arm with mass: MuJoCo moves it, and a servo with the joints' torque limits follows the controller."""

import math
from collections.abc import Callable
from typing import Final

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import UR5E, Kinematics
from bid_ros.robots.ur.twin.model import LIMBS, add_ur5e, compile_scene, empty_scene
from bid_ros.robots.ur.twin.plant import Array, finite_angles
from bid_ros.sim.limbs import Limbs
from bid_ros.sim.mjcf import part

_FREQUENCY: Final = 60.0  # rad/s of the servo, critically damped
_MAX_STEPS: Final = 100  # of the physics in a cycle


class MujocoPlant:
    """The arm of a scene, by default one from :mod:`bid_ros.robots.ur.twin.model`, driven by computed torque.

    Each joint gets ``M (qdd + k_d (qd_target - qd) + k_p (q_target - q)) + bias + friction``, clipped to its torque
    limit, with mass matrix, gravity and Coriolis terms of the model. The arm knows its own dynamics and its gripper
    exactly, which a real one does not, so it keeps to a feasible path to nanometres; what the gripper holds or touches
    it does not know.

    Args:
        model, data: the scene; others may read it and act in it between two steps, in the same thread.
        initial_q: ``(joints,)`` rad, where the arm is put at once.
        before_step: called before every step of the physics, for all that happens around the arm: the gripper's drive,
            strings, belts.
        limbs: names and torque limits of the arm's joints.

    Attributes:
        joint_torques: ``(joints,)`` N m that the motors gave in the latest step.

    Raises:
        ArmError: if the model lacks one of the joints, or the angles are not one finite one for each.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        initial_q: ArrayLike,
        before_step: Callable[[], None] | None = None,
        limbs: Limbs = LIMBS,
    ) -> None:
        try:
            joints = [model.joint(name) for name in limbs.joints]
        except KeyError as error:
            raise ArmError(f"the scene has no UR5e to drive: {error.args[0]}; add it with add_ur5e") from error
        self._model, self._data, self._before_step = model, data, before_step
        self._qpos = np.array([int(joint.qposadr[0]) for joint in joints])
        self._dof = np.array([int(joint.dofadr[0]) for joint in joints])
        self._damping = model.dof_damping[self._dof].copy()
        self._limits = np.array(limbs.torques)
        self._wanted, self._weighed = np.zeros(model.nv), np.zeros(model.nv)
        self._target_qd, self.joint_torques = np.zeros(len(joints)), np.zeros(len(joints))
        data.qpos[self._qpos] = finite_angles(initial_q, len(joints))
        data.qvel[self._dof] = 0.0
        mujoco.mj_forward(model, data)

    @property
    def joint_positions(self) -> Array:
        """Actual joint angles ``(joints,)`` rad."""
        angles: Array = self._data.qpos[self._qpos]
        return angles

    @property
    def joint_velocities(self) -> Array:
        """Actual joint speeds ``(joints,)`` rad/s."""
        speeds: Array = self._data.qvel[self._dof]
        return speeds

    def step(self, target_q: Array, target_qd: Array, dt: float) -> None:
        """Pass a cycle of ``dt`` s, at whose end the arm should be at ``target_q`` rad with ``target_qd`` rad/s.

        Raises:
            ArmError: if ``dt`` is not a multiple of the physics' time step.
        """
        steps = self._steps_in(dt)
        begin = target_q - target_qd * dt
        for step in range(steps):
            self._step(begin + target_qd * (dt * step / steps), target_qd)

    def hold(self, dt: float) -> None:
        """Pass ``dt`` s with the brakes on: the joints stand where they are, whatever pulls; ArmError as for step."""
        still, angles = np.zeros_like(self._target_qd), self.joint_positions
        self._data.qvel[self._dof] = 0.0
        self._target_qd = still
        for _ in range(self._steps_in(dt)):
            self._step(angles, still)
            self._data.qpos[self._qpos] = angles
            self._data.qvel[self._dof] = 0.0
        self.joint_torques = still

    def _steps_in(self, dt: float) -> int:
        timestep = float(self._model.opt.timestep)
        steps = round(dt / timestep)
        if not 1 <= steps <= _MAX_STEPS or not math.isclose(steps * timestep, dt, rel_tol=1e-6):
            raise ArmError(
                f"the controller's cycle is {dt} s; valid are 1 to {_MAX_STEPS} times the physics' {timestep} s"
            )
        return steps

    def _step(self, q: Array, qd: Array) -> None:
        """Advance the physics by one step, from a state that should be ``q`` to one with the speed ``qd``."""
        if self._before_step is not None:
            self._before_step()
        mujoco.mj_step1(self._model, self._data)
        self.joint_torques = self._servo(q, qd)
        self._data.qfrc_applied[self._dof] = self.joint_torques
        mujoco.mj_step2(self._model, self._data)

    def _servo(self, q: Array, qd: Array) -> Array:
        data, timestep = self._data, self._model.opt.timestep
        speed = data.qvel[self._dof]
        acceleration = (qd - self._target_qd) / timestep
        acceleration += _FREQUENCY**2 * (q - data.qpos[self._qpos])
        acceleration += 2 * _FREQUENCY * (self._target_qd - speed)
        self._target_qd = qd
        self._wanted[self._dof] = acceleration
        mujoco.mj_mulM(self._model, data, self._weighed, self._wanted)
        # Friction acts at the speed at the end of the step, as the implicit integrator takes it.
        friction = self._damping * (speed + timestep * acceleration)
        torque: Array = self._weighed[self._dof] + data.qfrc_bias[self._dof] + friction
        return np.clip(torque, -self._limits, self._limits)


def standing_arm(initial_q: ArrayLike, kinematics: Kinematics = UR5E) -> MujocoPlant:
    """Return a UR5e that stands alone in an empty world, without a gripper.

    Args:
        initial_q: ``(6,)`` rad.
        kinematics: lengths of the links; masses and looks stay the UR5e's.

    Raises:
        ArmError: if these are not six finite angles.
    """
    scene = empty_scene()
    add_ur5e(part(scene, "worldbody"), kinematics=kinematics)
    model = compile_scene(scene)
    return MujocoPlant(model, mujoco.MjData(model), initial_q)
