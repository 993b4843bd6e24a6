"""Success of picking, judged from physics: the cup stands on the saucer, and the gripper is away from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.checks import check_range
from bid_ros.sim.picking_geometry import CUP_HEIGHT, CUP_RADIUS, FINGERTIP_BELOW_TOOL, SAUCER_HEIGHT, SAUCER_RADIUS

Picked = Literal["pending", "success", "dropped"]


@dataclass(frozen=True)
class PickingScoreConfig:
    """When a cup counts as put on the saucer.

    Attributes:
        hold_s: s for which everything below must be true (or the cup lies) without interruption.
        aside: m by which the cup's axis may be beside the saucer's middle: its whole foot is on the saucer.
        height: m by which the foot may be over or under the saucer's top: it stands on it.
        tilt: rad by which the cup may lean.
        release_margin: m by which the opening must exceed the cup's diameter: it is let go of.
        clearance: m by which the fingertips must be over the rim, or the same beside the cup: the tool is away.
        fallen_tilt: rad of lean from which a cup that is not held has fallen over.
    """

    hold_s: float = 0.3
    aside: float = SAUCER_RADIUS - CUP_RADIUS
    height: float = 0.004
    tilt: float = 0.14
    release_margin: float = 0.008
    clearance: float = 0.005
    fallen_tilt: float = 0.8

    def __post_init__(self) -> None:
        highs = {"hold_s": 10.0, "aside": SAUCER_RADIUS, "height": 0.02, "tilt": 0.5, "release_margin": 0.02}
        for name, high in (*highs.items(), ("clearance", 0.1), ("fallen_tilt", math.pi / 2)):
            check_range("score", name, getattr(self, name), 1e-6, high, ValueError)


class PickingScore:
    """Follows the states of one episode and says how it stands. All positions in m, all in one frame, z up.

    ``dropped`` means: the cup has fallen over or off the table and is not between the fingers, for ``hold_s``. A cup
    that was put down upright beside the saucer is pending: it can be picked again. The first outcome stays until
    :meth:`reset`.
    """

    def __init__(self, config: PickingScoreConfig | None = None) -> None:
        self._config = config or PickingScoreConfig()
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at the start of an episode."""
        self.outcome: Picked = "pending"
        self._candidate: Picked = "pending"
        self._since_ns = 0

    def update(
        self,
        now_ns: int,
        saucer_position: ArrayLike,
        cup_position: ArrayLike,
        cup_quaternion: ArrayLike,
        tool_position: ArrayLike,
        gripper_width: float,
    ) -> Picked:
        """Judge one state.

        Args:
            now_ns: time of the state, not decreasing.
            saucer_position: ``(3,)`` middle of the saucer's underside.
            cup_position: ``(3,)`` middle of the cup's foot; cup_quaternion: ``(4,)`` xyzw, z along its axis.
            tool_position: ``(3,)`` middle of the pads of a tool that points down.
            gripper_width: opening width in m.
        """
        saucer, cup, tool = (np.asarray(p, dtype=np.float64) for p in (saucer_position, cup_position, tool_position))
        candidate = self._judge(cup - saucer, lean(cup_quaternion), tool - cup, gripper_width)
        if candidate != self._candidate:
            self._candidate, self._since_ns = candidate, now_ns
        held_for = (now_ns - self._since_ns) / 1e9
        if self.outcome == "pending" and candidate != "pending" and held_for >= self._config.hold_s:
            self.outcome = candidate
        return self.outcome

    def _judge(self, cup: np.ndarray, leaning: float, tool: np.ndarray, width: float) -> Picked:
        """Judge the cup's place from the saucer and the tool's from the cup."""
        config = self._config
        open_hand = width > 2 * CUP_RADIUS + config.release_margin
        standing = leaning <= config.tilt and abs(cup[2] - SAUCER_HEIGHT) <= config.height
        if standing and math.hypot(cup[0], cup[1]) <= config.aside:
            return "success" if open_hand and self._away(tool) else "pending"
        empty_hand = open_hand or self._away(tool)
        fallen = leaning > config.fallen_tilt or cup[2] < -0.05
        return "dropped" if fallen and empty_hand else "pending"

    def _away(self, tool: np.ndarray) -> bool:
        """Whether the tool, ``(3,)`` m from the cup's foot, is over the rim or beside the cup."""
        clearance = self._config.clearance
        over = tool[2] - FINGERTIP_BELOW_TOOL > CUP_HEIGHT + clearance
        return bool(over or math.hypot(tool[0], tool[1]) > 3 * CUP_RADIUS + clearance)


def lean(quaternion: ArrayLike) -> float:
    """Angle in rad between straight up and the z axis of a body turned by ``quaternion`` ``(4,)`` xyzw."""
    x, y, _, _ = np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)
    return math.acos(max(-1.0, 1.0 - 2.0 * (x * x + y * y)))
