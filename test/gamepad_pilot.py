"""A person at a gamepad, as a controller: it sees what a person sees of the cameras, late and not exactly."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.tasks.placing.geometry import CUP_HEIGHT, OBJECT_LENGTH
from bid_ros.teleop.joy import AXES, BUTTONS

LOOK_S = 0.1  # between two pictures
REACTION_S = 0.2  # from a picture to the thumb
MISJUDGED_M = 0.002  # standard deviation of where things seem to be
THUMB = 6.0  # full deflections of a stick in a second
STEP = 1 / 32  # of a stick, below which a hand is not exact
GAIN = 1.5 / 0.15  # deflection for a metre: 1.5/s at the speed of full deflection
NEAR_M, LOWER_M = 0.006, 0.03  # beside the cup; of the object's end below the rim
CLEAR_M = 0.03  # of the object's end over the rim on its way
AWAY_M = 0.10  # upwards from the cup at the end


@dataclass
class Seen:
    """What a picture shows, m, base frame: the object's middle, the foot of the cup, the tool, the fingers' opening."""

    at_s: float
    thing: Array
    cup: Array
    tool: Array
    width: float


class Pilot:
    """Places the object with two sticks and two buttons. One episode.

    Args:
        seed: of what it misjudges.
        begin_s: time at which the episode begins.

    Attributes:
        phase: ``carry``, ``lower``, ``release``, ``leave`` or ``done``.
    """

    def __init__(self, seed: int, begin_s: float) -> None:
        self._rng = np.random.default_rng(seed)
        self._pictures: deque[Seen] = deque()
        self._seen: Seen | None = None
        self._thumbs, self._now_s = np.zeros(3), begin_s
        self._calm_s = self._from_z = 0.0
        self.phase = "carry"

    def look(self, now_s: float, thing: Array, cup: Array, tool: Array, width: float) -> None:
        """See a picture, if it is time for one."""
        if self._pictures and now_s - self._pictures[-1].at_s < LOOK_S - 1e-9:
            return
        thing, cup = (place + self._rng.normal(0.0, MISJUDGED_M, 3) for place in (thing, cup))
        self._pictures.append(Seen(now_s, thing, cup, tool, width))

    def joy(self, now_s: float) -> tuple[list[float], list[int]]:
        """Return axes and buttons of ``sensor_msgs/Joy`` now."""
        while self._pictures and now_s - self._pictures[0].at_s >= REACTION_S:
            self._seen = self._pictures.popleft()
        wanted, pressed = (np.zeros(3), "") if self._seen is None else self._decide(self._seen, now_s)
        most = THUMB * max(0.0, now_s - self._now_s)
        self._thumbs = self._thumbs + np.clip(wanted - self._thumbs, -most, most)
        self._now_s = now_s
        axes, buttons = [0.0] * 8, [0] * 8
        for name, value in zip(("left_y", "left_x", "right_y"), self._thumbs, strict=True):
            axes[AXES[name]] = float(np.round(value / STEP) * STEP)
        buttons[BUTTONS["left_bumper"]] = int(self._seen is not None and self.phase != "done")
        if pressed:
            buttons[BUTTONS[pressed]] = 1
        return axes, buttons

    def _decide(self, seen: Seen, now_s: float) -> tuple[Array, str]:
        """Return where the thumbs go, and the button that is pressed."""
        aside = (seen.cup - seen.thing)[:2]
        over = seen.thing[2] - OBJECT_LENGTH / 2 - seen.cup[2] - CUP_HEIGHT  # of the object's end over the rim
        beside = float(np.linalg.norm(aside))
        if self.phase == "carry":
            self._calm_s = now_s if beside > NEAR_M else self._calm_s
            if now_s - self._calm_s > REACTION_S:
                self.phase = "lower"
            return _deflected([*aside, CLEAR_M - over if beside < 0.1 or over < CLEAR_M else 0.0]), ""
        if self.phase == "lower":
            if over < -LOWER_M:
                self.phase, self._calm_s, self._from_z = "release", now_s, float(seen.tool[2])
                return np.zeros(3), ""
            lower = -LOWER_M - 0.01 - over if beside < 2 * NEAR_M else 0.0
            return _deflected([*aside, max(lower, -0.05)]), ""
        if self.phase == "release":
            if now_s - self._calm_s > 0.9:
                self.phase = "leave"
            # Pressed once, when the hand is still.
            return np.zeros(3), "south" if 0.3 < now_s - self._calm_s < 0.45 else ""
        if self.phase == "leave":
            if seen.tool[2] > self._from_z + AWAY_M:
                self.phase, self._calm_s = "done", now_s
            return np.array([0.0, 0.0, 0.7]), ""
        return np.zeros(3), "start" if now_s - self._calm_s < 0.2 else ""


def _deflected(error: list[float]) -> Array:
    """Return the deflections of the sticks for a distance, m; a stick is moved a little at least, or not at all."""
    wanted = np.clip(GAIN * np.array(error), -1.0, 1.0)
    # A person knows that the first part of a stick's way does nothing, and pushes beyond it.
    return np.where(np.abs(wanted) < 0.015, 0.0, np.sign(wanted) * np.maximum(np.abs(wanted), 0.3))
