"""Franka Kitchen in gymnasium-robotics, ``FrankaKitchen-v1``: joint targets as actions, positions without noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.checks import finite, robotics_environment
from bid_ros.bench.drawing import Drawing
from bid_ros.bench.kitchen.catalogue import ARM, EPISODE_GOALS, GOALS, KITCHEN, OBJECTS
from bid_ros.core.errors import BidError

Array = NDArray[np.float64]

NAME: Final = "FrankaKitchen-v1"
RATE_HZ: Final = 12.5  # 40 steps of 2 ms
START_SPREAD: Final = 0.03  # rad, to either side, of the seven joints of the arm at the start
FASTEST: Final = 10.0  # rad/s; a target is at most so far from where a joint is, times 0.08 s
KETTLE: Final = 23  # index of its place among the thirty positions; its quaternion, w first, follows
CENTRE: Final = (-0.25, 0.5, 2.1)  # m, what a picture looks at
VIEW: Final = (68.0, -22.0, 2.1)  # of a picture: azimuth and elevation, degrees, and distance, m


@dataclass(frozen=True, eq=False)
class KitchenState:
    """One instant.

    Attributes:
        agent: ``(9,)`` where the joints of arm and fingers are, rad and m. As an action it stays, but for its weight: a
            joint sinks by up to a hundredth of a rad a step.
        block: ``(21,)`` positions of what is in the kitchen, rad, m and the kettle's quaternion.
        done: names of the goals that were reached since the episode began, in that order.
        coverage: how many they are as a share of four, at most 1.
    """

    agent: Array
    block: Array
    done: tuple[str, ...]
    coverage: float


def score(coverage: float) -> float:
    """Return an episode's score, 0 to 1: goals done as a share of four. The published ``p_k`` is how often ``k/4``."""
    return coverage


def features(shown: Array) -> dict[str, Array]:
    """Return the features that ``config/kitchen.yaml`` observes, by name, of positions ``(..., 30)``."""
    return {
        "arm": shown[..., : ARM - 2],
        "fingers": shown[..., ARM - 2 : ARM],
        "fixtures": shown[..., ARM:KETTLE],
        "kettle_position": shown[..., KETTLE : KETTLE + 3],
        "kettle_quaternion": shown[..., KETTLE + 3 : KETTLE + 7],
    }


def observation_values(state: KitchenState) -> Mapping[str, Array]:
    """Return the raw value of each feature, by its name."""
    return features(np.concatenate([state.agent, state.block]))


class KitchenEnv:
    """Do four of seven things with a Franka arm, 12.5 steps a second. The same seed and actions give the same states.

    An action holds targets of the nine joints, rad and m, as Diffusion Policy (Chi et al., RSS 2023) commands them.
    The environment's own actions are velocities that it turns into such targets; here the targets are given, with the
    limits that the published environment for them has.

    Args:
        drift: of what is in the kitchen; only 0 is valid.

    Raises:
        BidError: the kitchen cannot drift, or gymnasium-robotics is not installed.
    """

    def __init__(self, drift: float = 0.0) -> None:
        if drift:
            raise BidError(f"kitchen: drift is {drift:g}; valid is 0: a kitchen stays where it is")
        self._gym = robotics_environment(KITCHEN, NAME)
        self._done: list[str] = []
        self._drawing: Drawing | None = None

    @property
    def physics(self) -> tuple[Any, Any]:
        """MuJoCo's model and data, for scripted operators that may know the truth."""
        return self._gym.model, self._gym.data

    def reset(self, seed: int) -> KitchenState:
        """Start an episode: the seed draws the joints of the arm, up to 0.03 rad from the published start.

        Raises:
            BidError: the seed is not 0 to 2^32 - 1.
        """
        if not 0 <= seed < 2**32:
            raise BidError(f"kitchen: seed is {seed}; valid is 0 to {2**32 - 1}")
        self._gym.reset(seed=int(seed))
        start = np.array(self._gym.robot_env.init_qpos)
        start[:7] += np.random.default_rng(seed).uniform(-START_SPREAD, START_SPREAD, 7)
        return self.set_state(start[:ARM], start[ARM:])

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> KitchenState:
        """Put everything somewhere, at rest. Raises BidError for other shapes or values that are not finite.

        Args:
            agent: ``(9,)`` as in :class:`KitchenState`.
            block: ``(21,)`` as in :class:`KitchenState`.
        """
        joints = [finite("kitchen", "agent", agent, ARM), finite("kitchen", "block", block, OBJECTS)]
        self._gym.robot_env.set_state(np.concatenate(joints), np.zeros(self._gym.model.nv))
        self._done.clear()
        return self._state()

    def step(self, action: ArrayLike) -> KitchenState:
        """Drive the joints to ``action`` ``(9,)`` for 0.08 s; return the new state.

        Raises:
            BidError: ``action`` is not 9 finite numbers.
        """
        robot, model = self._gym.robot_env, self._gym.model
        joints = np.array(self._gym.data.qpos[:ARM])
        way = np.clip(finite("kitchen", "action", action, ARM) - joints, -FASTEST / RATE_HZ, FASTEST / RATE_HZ)
        lowest, highest = robot.robot_pos_bound[:ARM].T
        robot.do_simulation(np.clip(joints + way, lowest, highest), robot.frame_skip)
        assert model.nq == ARM + OBJECTS
        return self._state()

    def picture(self, state: KitchenState, size: int) -> NDArray[np.uint8]:
        """Return a picture ``(size, size, 3)`` uint8, rgb. Raises CameraError where no OpenGL works."""
        self.set_state(state.agent, state.block)
        if self._drawing is None or self._drawing.size != size:
            self._drawing = Drawing(self._gym.model, size)
        return self._drawing.picture(self._gym.data, CENTRE, VIEW)

    def _state(self) -> KitchenState:
        positions = np.array(self._gym.data.qpos)
        objects = positions[ARM:]
        self._done += [name for name, goal in GOALS.items() if name not in self._done and goal.done(objects)]
        return KitchenState(positions[:ARM], objects, tuple(self._done), min(len(self._done) / EPISODE_GOALS, 1.0))


@cache
def _drawn() -> KitchenEnv:
    """Return the world of which pictures are taken."""
    return KitchenEnv()


def render(state: KitchenState, size: int = 192) -> NDArray[np.uint8]:
    """Return a picture ``(size, size, 3)`` uint8, rgb. Raises BidError as :class:`KitchenEnv`."""
    return _drawn().picture(state, size)
