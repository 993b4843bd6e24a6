"""What tells one scripted operator from another. Drawn, as people differ."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Skill:
    """What tells one operator from another.

    Attributes:
        speed: of the tool on its way, m/s.
        turn_speed: rad/s.
        aim: standard deviation of where a grasp is aimed at, m.
        tremor: standard deviation of the hand's shaking, m.
        miss: probability that a grasp goes wrong.
        pause: probability of an idle pause where one part of the motion ends.
        longest_pause: s.
        notice: s until a miss is noticed.
    """

    speed: float
    turn_speed: float
    aim: float
    tremor: float
    miss: float
    pause: float
    longest_pause: float
    notice: float


def draw_skill(random: np.random.Generator, practice: float = 0.0) -> Skill:
    """Draw an operator: a level from ``practice`` (0: a beginner) to 1, and what goes with it."""
    level = practice + (1.0 - practice) * random.uniform()
    return Skill(
        speed=float(random.uniform(0.08, 0.18) + 0.14 * level),
        turn_speed=float(random.uniform(0.8, 1.6) + 0.8 * level),
        aim=0.006 - 0.004 * level,
        tremor=0.003 - 0.0025 * level,
        miss=0.45 - 0.35 * level,
        pause=float(random.uniform(0.1, 0.5)),
        longest_pause=float(random.uniform(0.4, 1.2)),
        notice=float(random.uniform(0.1, 0.5)),
    )
