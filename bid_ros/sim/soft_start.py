"""The distance that a body covers after a smooth start."""

from typing import Final

SOFT_START_S: Final = 0.5  # s until the full speed


def travelled(speed: float, t_s: float) -> float:
    """Return the distance in m, ``t_s`` seconds after a smooth start to ``speed`` m/s; 0 before it."""
    t = max(t_s, 0.0)
    x = min(t / SOFT_START_S, 1.0)
    # Integral of the smooth step 3 x^2 - 2 x^3, then constant speed: velocity and acceleration have no jump.
    return speed * (SOFT_START_S * (x**3 - x**4 / 2) + max(t - SOFT_START_S, 0.0))
