"""The door of Adroit (Rajeswaran et al., RSS 2018), as gymnasium-robotics simulates it: ``AdroitHandDoor-v1``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.checks import finite, robotics_environment
from bid_ros.bench.drawing import Drawing
from bid_ros.core.errors import BidError

Array = NDArray[np.float64]

NAME: Final = "AdroitHandDoor-v1"
ACTUATORS: Final = 28  # of the arm, 4, and of the hand, 24
LATCH, HINGE, FRAME = 0, 1, slice(2, 5)  # of a block: rad, rad, and the place of the door's frame, m
PALM, HANDLE = slice(29, 32), slice(32, 35)  # of what the environment shows
VIEW: Final = (60.0, -25.0, 1.2)  # of a picture: azimuth and elevation, degrees, and distance from the handle, m
OPEN: Final = 1.35  # rad from which on the environment calls the door open


@dataclass(frozen=True, eq=False)
class DoorState:
    """One instant.

    Attributes:
        agent: ``(28,)`` where the joints of arm and hand are, in the units of an action.
        block: ``(5,)`` latch and hinge of the door, rad, and x, y, z of its frame, m.
        shown: ``(39,)`` what the environment shows.
        coverage: how far the door is open, as a share of 1.35 rad; 0 to 1.
    """

    agent: Array
    block: Array
    shown: Array
    coverage: float


def score(coverage: float) -> float:
    """Return an episode's score, 0 to 1: its largest angle of the door divided by 1.35 rad, at most 1."""
    return min(max(coverage, 0.0), 1.0)


def features(shown: Array) -> dict[str, Array]:
    """Return the features that ``config/door.yaml`` observes, by name, of what the environment shows ``(..., 39)``."""
    return {
        "hand": shown[..., :27],
        "door": shown[..., 27:29],
        "palm_position": shown[..., PALM],
        "handle_position": shown[..., HANDLE],
    }


def observation_values(state: DoorState) -> Mapping[str, Array]:
    """Return the raw value of each feature, by its name."""
    return features(state.shown)


class DoorEnv:
    """Open the door, 25 steps a second. The same seed and actions give the same states.

    Args:
        drift: of the door's frame; only 0 is valid.

    Raises:
        BidError: the door cannot drift, or gymnasium-robotics is not installed.
    """

    def __init__(self, drift: float = 0.0) -> None:
        if drift:
            raise BidError(f"door: drift is {drift:g}; valid is 0: a door stays in its frame")
        self._gym = robotics_environment("door", NAME)
        self._drawing: Drawing | None = None

    def reset(self, seed: int) -> DoorState:
        """Start an episode: the seed draws where the door stands. Raises BidError for one that is not 0 to 2^32 - 1."""
        if not 0 <= seed < 2**32:
            raise BidError(f"door: seed is {seed}; valid is 0 to {2**32 - 1}")
        return self._state(self._gym.reset(seed=int(seed))[0])

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> DoorState:
        """Put hand and door somewhere, at rest. Raises BidError for other shapes or values that are not finite.

        Args:
            agent: ``(28,)`` units of an action.
            block: ``(5,)`` as in :class:`DoorState`.
        """
        place, door = finite("door", "agent", agent, ACTUATORS), finite("door", "block", block, 5)
        joints = np.concatenate([self._gym.act_mean + place * self._gym.act_rng, [door[HINGE], door[LATCH]]])
        self._gym.set_env_state({"qpos": joints, "qvel": np.zeros(len(joints)), "door_body_pos": door[FRAME]})
        return self._state(self._gym._get_obs())

    def step(self, action: ArrayLike) -> DoorState:
        """Drive the actuators to ``action`` ``(28,)``, clipped to -1 to 1, for 0.04 s; return the new state.

        Raises:
            BidError: ``action`` is not 28 finite numbers.
        """
        return self._state(self._gym.step(finite("door", "action", action, ACTUATORS))[0])

    def picture(self, state: DoorState, size: int) -> NDArray[np.uint8]:
        """Return a picture ``(size, size, 3)`` uint8, rgb. Raises CameraError where no OpenGL works."""
        self.set_state(state.agent, state.block)
        if self._drawing is None or self._drawing.size != size:
            self._drawing = Drawing(self._gym.model, size)
        return self._drawing.picture(self._gym.data, state.shown[HANDLE], VIEW)

    def _state(self, shown: Array) -> DoorState:
        gym = self._gym
        joints = gym.data.qpos.ravel()
        agent = (joints[:ACTUATORS] - gym.act_mean) / gym.act_rng
        frame = gym.model.body_pos[gym.door_body_id].ravel()
        block = np.array([joints[-1], joints[-2], *frame])
        return DoorState(agent, block, np.array(shown), float(np.clip(joints[-2] / OPEN, 0.0, 1.0)))


@cache
def _drawn() -> DoorEnv:
    """Return the world of which pictures are taken."""
    return DoorEnv()


def render(state: DoorState, size: int = 192) -> NDArray[np.uint8]:
    """Return a picture ``(size, size, 3)`` uint8, rgb. Raises BidError as :class:`DoorEnv`."""
    return _drawn().picture(state, size)
