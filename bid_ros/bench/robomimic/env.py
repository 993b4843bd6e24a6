"""Tasks of robomimic as robosuite 1.5 simulates them: low-dimensional observations, absolute poses as actions."""

import logging
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.checks import check_simulator, finite
from bid_ros.bench.drawing import Drawing
from bid_ros.bench.robomimic.catalogue import POSE, TASKS, RobomimicTask
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import matrix_from_6d, matrix_to_6d, vector_from_matrix

Array = NDArray[np.float64]

POSITION, ROTATION, GRIPPER = slice(0, 3), slice(3, 9), 9
RATE_HZ: Final = 20


@dataclass(frozen=True, eq=False)
class ManipulationState:
    """One instant.

    Attributes:
        agent: ``(10 A,)`` where the tools of A arms are, and what their grippers were told last, as an action says it.
        block: ``(Q,)`` all joint positions of the simulation, those of the objects last: rad and m.
        shown: values of :attr:`RobomimicTask.observed`, by robomimic's names.
        coverage: 1 where the task is done, otherwise 0.
    """

    agent: Array
    block: Array
    shown: Mapping[str, Array]
    coverage: float


def score(coverage: float) -> float:
    """Return an episode's score: 1 if the task was done in any state of it, otherwise 0."""
    return coverage


def observation_values(state: ManipulationState) -> Mapping[str, Array]:
    """Return the raw value of each feature, by its name."""
    return state.shown


class RobomimicEnv:
    """A Panda or two at a table, 20 steps a second. The same seed and actions give the same states.

    An action is a pose that each tool is to reach, in the world's frame, as in the demonstrations of Diffusion Policy
    (Chi et al., RSS 2023); robosuite's controller drives the arm there.

    Args:
        name: of the task.
        drift: of the object; only 0 is valid.

    Raises:
        BidError: there is no such task, the object cannot drift, or robosuite is not installed.
    """

    def __init__(self, name: str, drift: float = 0.0) -> None:
        if name not in TASKS:
            raise BidError(f"task '{name}' is not one of robomimic's here; valid are {', '.join(TASKS)}")
        if drift:
            raise BidError(f"{name}: drift is {drift:g}; valid is 0: what lies on the table stays there")
        self.task = TASKS[name]
        self._suite = _simulator(self.task)
        self._grippers = [-1.0] * self.task.arms
        self._drawing: Drawing | None = None
        self._drawn: Any = None

    def reset(self, seed: int) -> ManipulationState:
        """Start an episode: the seed draws arm and object. Raises BidError for one that is not 0 to 2^32 - 1."""
        if not 0 <= seed < 2**32:
            raise BidError(f"{self.task.name}: seed is {seed}; valid is 0 to {2**32 - 1}")
        suite = self._suite
        suite.rng = np.random.default_rng(seed)
        suite.placement_initializer = None  # made anew, with these numbers
        self._grippers = [-1.0] * self.task.arms
        return self._state(suite.reset())

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> ManipulationState:
        """Put everything somewhere, at rest. Raises BidError for other shapes or values that are not finite.

        Args:
            agent: ``(10 A,)``; only what the grippers were told counts, the rest follows from the joints.
            block: ``(Q,)`` as in :class:`ManipulationState`.
        """
        data = self._suite.sim.data
        joints = finite(self.task.name, "block", block, len(data.qpos))
        poses = finite(self.task.name, "agent", agent, self.task.action_size).reshape(-1, POSE)
        self._grippers = [float(pose[GRIPPER]) for pose in poses]
        data.qpos[:], data.qvel[:] = joints, 0.0
        self._suite.sim.forward()
        return self._state(self._suite._get_observations(force_update=True))

    def step(self, action: ArrayLike) -> ManipulationState:
        """Drive the tools to ``action`` ``(10 A,)`` for 0.05 s; return the new state.

        Raises:
            BidError: ``action`` is not that many finite numbers.
        """
        wanted = finite(self.task.name, "action", action, self.task.action_size).reshape(-1, POSE)
        # A gripper opens or closes, at its own speed.
        self._grippers = [1.0 if pose[GRIPPER] > 0 else -1.0 for pose in wanted]
        told = list[Array]()
        for pose, gripper in zip(wanted, self._grippers, strict=True):
            turn = vector_from_matrix(matrix_from_6d(pose[ROTATION]))
            told.append(np.concatenate([pose[POSITION], turn, [gripper]]))
        shown, *_ = self._suite.step(np.concatenate(told))
        return self._state(shown)

    def picture(self, state: ManipulationState, size: int) -> NDArray[np.uint8]:
        """Return a picture ``(size, size, 3)`` uint8, rgb. Raises CameraError where no OpenGL works."""
        self.set_state(state.agent, state.block)
        model, data = self._suite.sim.model._model, self._suite.sim.data._data
        if self._drawing is None or self._drawing.size != size or self._drawn is not model:
            self._drawing, self._drawn = Drawing(model, size, groups=(1,)), model
        return self._drawing.picture(data, self.task.centre, self.task.view)

    def _state(self, shown: Mapping[str, Any]) -> ManipulationState:
        suite, agent = self._suite, list[Array]()
        for robot, gripper in zip(suite.robots, self._grippers, strict=True):
            site = robot.eef_site_id["right"]
            turn = matrix_to_6d(np.array(suite.sim.data.site_xmat[site]).reshape(3, 3))
            agent.append(np.concatenate([np.array(suite.sim.data.site_xpos[site]), turn, [gripper]]))
        return ManipulationState(
            agent=np.concatenate(agent),
            block=np.array(suite.sim.data.qpos),
            shown={ours: np.array(shown[theirs], dtype=np.float64) for ours, theirs in self.task.observed.items()},
            coverage=float(suite._check_success()),
        )


def _simulator(task: RobomimicTask) -> Any:
    """Return robosuite's environment; imported here, so that only the bench needs it.

    Raises:
        BidError: it is not installed.
    """
    check_simulator(task.name, "robosuite", "robosuite")
    with redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import robosuite
        from robosuite.controllers import load_composite_controller_config

        logging.getLogger("robosuite_logs").setLevel(logging.ERROR)  # it tells of parts that no task here has
        controllers = load_composite_controller_config(controller="BASIC")
        arm = controllers["body_parts"]["right"]
        arm["input_type"], arm["input_ref_frame"] = "absolute", "world"
        return robosuite.make(
            task.environment,
            robots=["Panda"] * task.arms,  # two face each other
            controller_configs=controllers,
            has_renderer=False,
            has_offscreen_renderer=False,
            use_camera_obs=False,
            use_object_obs=True,
            ignore_done=True,
            control_freq=RATE_HZ,
        )


@cache
def _drawn(name: str) -> RobomimicEnv:
    """Return the world of which pictures are taken."""
    return RobomimicEnv(name)


def render(name: str, state: ManipulationState, size: int = 192) -> NDArray[np.uint8]:
    """Return a picture ``(size, size, 3)`` uint8, rgb. Raises BidError as :class:`RobomimicEnv`."""
    return _drawn(name).picture(state, size)
