"""The stage of a task file with objects: the physics of the robot's twin without its controller, sockets and clock."""

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import TaskError
from bid_ros.core.rotation import DOWN_QUATERNION
from bid_ros.core.task import Task
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.robots.registry import twin_maker
from bid_ros.robots.ur.twin.mujoco_plant import MujocoPlant
from bid_ros.sim.limbs import Limbs, ToolReach
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.twin import Array, Pose
from bid_ros.tasks.base import PENDING, STEP_NS, Unjudged
from bid_ros.tasks.table.furniture import ObjectScene
from bid_ros.tasks.table.score import ObjectScore
from bid_ros.tasks.world import xyzw

STEP_S: Final = STEP_NS / NANOSECONDS
OPENING_SPEED: Final = 0.1  # m/s
STIFFNESS: Final = 1000.0  # N/m of each finger, as franky-sim's hand
DAMPING: Final = 50.0  # N s/m
FORCE: Final = 40.0  # N


class ObjectStage:
    """A :class:`bid_ros.tasks.base.Stage` with the arm of any robot whose twin names its limbs.

    The arm follows its commands by computed torque, without friction, smoothing or delay.

    Args:
        task: with objects.
        width, height: size of the images in pixels.
        cameras: names of the task's cameras.
        thresholds: of the gripper, from the robot's configuration file.

    Raises:
        TaskError: the robot's twin does not say what its arm and hand are, or the scene cannot be made.
        CameraError: no offscreen rendering works here.
    """

    def __init__(
        self, task: Task, width: int, height: int, cameras: Sequence[str], thresholds: GripperThresholds
    ) -> None:
        maker = twin_maker(task.robot)
        if not maker.limbs:
            raise TaskError(f"robot '{task.robot}' cannot be rehearsed with objects; run them in its twin: bid up")
        self._limbs: Limbs = resolve_name(maker.limbs)
        self._scene, self._thresholds, self._widest = ObjectScene(task), thresholds, task.limits.gripper_max
        model = maker.scene_model(self._scene)
        model.opt.disableactuator = 1  # the stage drives the fingers itself
        arm = [int(model.joint(name).dofadr[0]) for name in self._limbs.joints]
        model.dof_frictionloss[arm] = 0.0
        depths = [item.name for item in task.cameras if item.depth]
        self._model, self._renderer = model, SceneRenderer(model, width, height, cameras, depths=depths)
        self._score = ObjectScore(task) if task.success else Unjudged()

    @property
    def measured(self) -> Pose:
        """Pose of the tool."""
        hand = self._data.body(self._limbs.hand)
        tool: Array = hand.xpos + self._limbs.tool * hand.xmat[2::3]
        return tool, xyzw(hand.xquat)

    @property
    def width(self) -> float:
        """Opening of the gripper, m."""
        return float(self._data.qpos[self._finger_qpos].sum())

    @property
    def bodies(self) -> Mapping[str, Array]:
        """Positions of the objects."""
        return {name: position for name, (position, _) in self._world.ground_truth(0).bodies.items()}

    def begin(self, seed: int, start: Array, speed: float) -> None:
        """Put the tool at ``start``, gripper open; lay out the objects for the seed; start what a person moves."""
        layout = self._scene.layout(seed, speed)
        model, data = self._model, mujoco.MjData(self._model)
        self._data, self._world = data, self._scene.world(model, data)
        planned = mujoco.MjData(model)
        self._reach = ToolReach(model, planned, self._limbs)
        self._reach.home(self._limbs.home)
        self._q = self._joints(start, np.array(DOWN_QUATERNION))
        fingers = [model.joint(name) for name in self._limbs.fingers]
        self._finger_qpos = [int(joint.qposadr[0]) for joint in fingers]
        self._finger_dof = [int(joint.dofadr[0]) for joint in fingers]
        self._opening = self._widest
        data.qpos[self._finger_qpos] = self._widest / 2
        self._plant = MujocoPlant(model, data, self._q, self._before_step, self._limbs)
        self._world.lay_out(layout)
        self._world.start_path()
        mujoco.mj_forward(model, data)
        self._score.reset()
        self._now_ns, self._open = 0, True

    def images(self) -> Mapping[str, NDArray[np.uint8]]:
        """Return the images of the cameras."""
        return self._renderer.render(self._data.qpos, self._data.mocap_pos, self._data.mocap_quat)

    def step(self, position: Array, quaternion: Array, gripper: float | None) -> str:
        """Go one step of the physics on, to a pose of the tool."""
        if gripper is not None:
            self._open = bool(self._thresholds.wants_open(gripper, self._open))
        target = self._joints(position, quaternion)
        self._plant.step(target, (target - self._q) / STEP_S, STEP_S)
        self._q, self._now_ns = target, self._now_ns + STEP_NS
        bodies = self._world.ground_truth(self._now_ns).bodies
        outcome = self._score.update(self._now_ns, bodies, self.measured[0], self.width)
        return "" if outcome == PENDING else outcome

    def give_up(self) -> str:
        """Return the outcome of an episode whose time is over."""
        return self._score.timeout

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()

    def _joints(self, position: Array, quaternion: Array) -> Array:
        self._reach.move(np.asarray(position), np.asarray(quaternion))
        return self._reach.angles

    def _before_step(self) -> None:
        """Move the fingers towards open or closed, and what a person moves."""
        change = OPENING_SPEED * self._model.opt.timestep
        goal = self._widest if self._open else 0.0
        self._opening += min(max(goal - self._opening, -change), change)
        at, speed = self._data.qpos[self._finger_qpos], self._data.qvel[self._finger_dof]
        force = STIFFNESS * (self._opening / 2 - at) - DAMPING * speed
        self._data.qfrc_applied[self._finger_dof] = np.clip(force, -FORCE, FORCE)
        self._world.before_step()
