"""Push-T: the block's geometry, the environment and its picture. All in px, x to the right, y down."""

import math
import os
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.checks import finite
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra

Array = NDArray[np.float64]

TABLE: Final = 512  # px, side of the square table
AGENT_RADIUS: Final = 15  # px
GOAL: Final = (256.0, 256.0, np.pi / 4)  # x, y, angle of the mark
FULL_COVERAGE: Final = 0.95  # share of the mark from which on the published evaluation calls it covered

# Corners in the block's own frame.
BAR: Final = ((-60, 0), (60, 0), (60, 30), (-60, 30))
STEM: Final = ((-15, 30), (15, 30), (15, 120), (-15, 120))

# The nine key points of the human data in the block's own frame: the median over its 25,650 rows. The recorded ones are
# within 0.01 px of them in 92 % of the rows, and 2.2 px away at most, while the block turns.
KEYPOINTS: Final = (
    (9.26979, 90.04097),
    (-60.98347, -1.18673),
    (60.91276, -1.39336),
    (-0.27050, 25.54363),
    (-14.06493, 122.81585),
    (39.00274, 32.85740),
    (-39.96641, 32.72966),
    (-16.82434, 62.86318),
    (23.54146, -1.70029),
)

# The picture.
TABLE_COLOR: Final = (250, 250, 248)
MARK_COLOR: Final = (168, 226, 176)
BLOCK_COLOR: Final = (104, 116, 134)
AGENT_COLOR: Final = (58, 104, 224)
WALL_COLOR: Final = (200, 204, 208)
SHIFT: Final = 4  # bits of a pixel's fraction in OpenCV's coordinates


def to_table(points: ArrayLike, block: ArrayLike) -> Array:
    """Return points of the block on the table, ``(..., K, 2)`` px.

    Args:
        points: ``(K, 2)`` px in the block's frame.
        block: ``(..., 3)`` x, y in px and angle in rad of the block's frame on the table.
    """
    pose, local = np.asarray(block, dtype=np.float64), np.asarray(points, dtype=np.float64)
    cosine, sine = np.cos(pose[..., 2]), np.sin(pose[..., 2])
    block_to_table = np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)
    turned: Array = np.einsum("...ij,kj->...ki", block_to_table, local)
    return turned + pose[..., None, :2]


def keypoints(block: ArrayLike) -> Array:
    """Return the nine key points ``(..., 9, 2)`` px of blocks at ``(..., 3)``, in the order of the human data."""
    return to_table(KEYPOINTS, block)


@dataclass(frozen=True, eq=False)
class PushTState:
    """One instant.

    Attributes:
        agent: ``(2,)`` px.
        block: ``(3,)`` x, y in px and angle in rad, 0 to 2 pi.
        keypoints: ``(9, 2)`` px, computed from the block's pose.
        coverage: share of the mark that the block covers now, 0 to 1.
    """

    agent: NDArray[np.float64]
    block: NDArray[np.float64]
    keypoints: NDArray[np.float64]
    coverage: float


def score(max_coverage: float) -> float:
    """Return an episode's score, 0 to 1: its largest coverage divided by 0.95, at most 1.

    As in the tables of Chi et al., "Diffusion Policy", RSS 2023, and Liu et al., "Bidirectional Decoding", ICLR 2025.
    """
    return min(max(max_coverage / FULL_COVERAGE, 0.0), 1.0)


class PushTEnv:
    """Push a T-shaped block onto its mark, 10 steps a second. The same seed and actions give the same states.

    Args:
        drift: px added to the block's x and to its y after every step, as in the published test with a moving object
            (Liu et al., "Bidirectional Decoding", ICLR 2025; the policy is not trained with it).

    Raises:
        BidError: ``drift`` is not finite, or the package gym-pusht is not installed.
    """

    def __init__(self, drift: float = 0.0) -> None:
        if not math.isfinite(drift):
            raise BidError(f"Push-T: drift is {drift}; valid is a finite number of px a step")
        self._drift = drift
        simulator = _simulator()
        self._gym = simulator.PushTEnv()
        # Its step measures the coverage, before the drift, for a reward that nobody reads, in a third of its time.
        self._gym._get_coverage = lambda: 0.0
        self._polygons = simulator.pymunk_to_shapely

    def reset(self, seed: int) -> PushTState:
        """Start an episode as the published code starts the one with this seed.

        Seeds 0 to 205 are the starts of the human episodes, so an evaluation takes others; the published ones take
        100,000 and the following.

        Raises:
            BidError: the seed is not one of 0 to 2^32 - 1.
        """
        if not 0 <= seed < 2**32:
            raise BidError(f"Push-T: seed is {seed}; valid is 0 to {2**32 - 1}")
        # The generator and the order of the draws are part of what a seed means.
        draw = np.random.RandomState(seed)
        agent = [draw.randint(50, 450), draw.randint(50, 450)]
        place = [draw.randint(100, 400), draw.randint(100, 400)]
        angle = draw.randn() * 2 * np.pi - np.pi
        # gym-pusht turns the block after it placed it, about the centre of mass, which moves it: here that is wanted.
        self._gym.reset(options={"reset_to_state": [*agent, *place, angle]})
        return self._state()

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> PushTState:
        """Start from exactly this state, at rest.

        A start inside a wall or with block and agent overlapping is pushed apart during the following steps.

        Args:
            agent: ``(2,)`` px.
            block: ``(3,)`` x, y in px and angle in rad.

        Raises:
            BidError: a value is not finite or the shapes are others.
        """
        position, pose = finite("Push-T", "agent", agent, 2), finite("Push-T", "block", block, 3)
        # A new table at rest; gym-pusht's own reset to a state would move the block, see reset.
        self._gym._setup()
        body = self._gym.block
        body.angle = float(pose[2])
        body.position = tuple(pose[:2].tolist())
        self._gym.agent.position = tuple(position.tolist())
        return self._state()

    def step(self, action: ArrayLike) -> PushTState:
        """Let the agent move towards ``action`` ``(2,)`` px for 0.1 s and return the new state, after the drift.

        Raises:
            BidError: ``action`` is not two finite numbers, or the episode was not begun with reset or set_state.
        """
        target = finite("Push-T", "action", action, 2)
        if not hasattr(self._gym, "block"):
            raise BidError("Push-T: a step before the first reset; valid is reset or set_state first")
        self._gym.step(target)
        if self._drift:
            x, y = self._gym.block.position
            self._gym.block.position = (x + self._drift, y + self._drift)
        return self._state()

    def _state(self) -> PushTState:
        body = self._gym.block
        pose = np.array([*body.position, body.angle % (2 * np.pi)])
        return PushTState(
            agent=np.array([*self._gym.agent.position]),
            block=pose,
            keypoints=keypoints(pose),
            coverage=self._coverage(),
        )

    def _coverage(self) -> float:
        """As gym-pusht measures it, but with the block's parts in a fixed order: its own differs in the last bit."""
        gym = self._gym
        mark = self._polygons(gym.get_goal_pose_body(gym.goal_pose), gym._block_shapes)
        block = self._polygons(gym.block, gym._block_shapes)
        return float(mark.intersection(block).area / mark.area)


def _simulator() -> Any:
    """Return gym-pusht's module; imported here, so that only the bench needs it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with extra("bench", "Push-T"):
        import gym_pusht.envs.pusht as pusht
    return pusht


def render(state: PushTState, size: int = 192) -> NDArray[np.uint8]:
    """Return a picture ``(size, size, 3)`` uint8, rgb, of the table seen from above.

    Raises:
        BidError: ``size`` is below 16 px.
    """
    if size < 16:
        raise BidError(f"Push-T: a picture of {size} px; valid is 16 px or more")
    picture = np.full((size, size, 3), TABLE_COLOR, dtype=np.uint8)
    scale = size / TABLE
    cv2.rectangle(picture, (0, 0), (size - 1, size - 1), WALL_COLOR, max(1, round(6 * scale)))
    for pose, color in ((np.array(GOAL), MARK_COLOR), (state.block, BLOCK_COLOR)):
        for part in (BAR, STEM):
            cv2.fillPoly(picture, [_to_pixels(to_table(part, pose), scale)], color, cv2.LINE_AA, SHIFT)
    x, y = _to_pixels(state.agent, scale).tolist()
    cv2.circle(picture, (x, y), round(AGENT_RADIUS * scale * 2**SHIFT), AGENT_COLOR, cv2.FILLED, cv2.LINE_AA, SHIFT)
    return picture


def _to_pixels(points: NDArray[np.float64], scale: float) -> NDArray[np.int32]:
    """Return table coordinates as OpenCV's fixed-point pixels: a pixel's centre is a whole number there."""
    return np.round((points * scale - 0.5) * 2**SHIFT).astype(np.int32)
