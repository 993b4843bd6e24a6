import numpy as np

from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.pace import BURST_S, NEAR_RAD, JointPace

LIMITS = DriverLimits(("a", "b"), "x", np.full(2, -3.0), np.full(2, 3.0), np.array([1.0, 2.0]), 4.0)
PERIOD_S = 0.01


def gone(step, seconds):
    """How far joints get with a step in every period before one is refused, and the refusal."""
    pace, way = JointPace(LIMITS), np.zeros(2)
    pace.begin(0.0)
    for number in range(1, round(seconds / PERIOD_S) + 1):
        refusal = pace.take(np.array(step), number * PERIOD_S)
        if refusal:
            return way, refusal
        way += np.abs(step)
    return way, ""


def test_steps_at_the_limit_go_on_and_on():
    assert gone([0.01, -0.02], 10.0)[1] == ""


def test_what_early_steps_add_up_to_is_bounded():
    way, refusal = gone([0.0, 0.05], 10.0)
    assert refusal.startswith("a set-point needs") and "joint 'b' of the robot at x; valid is up to 2" in refusal
    assert way[1] < NEAR_RAD + 2.0 * (BURST_S + way[1] / 0.05 * PERIOD_S) + 1e-9


def test_a_late_step_may_be_as_long_as_the_pause():
    pace = JointPace(LIMITS)
    pace.begin(5.0)
    assert pace.take(np.array([0.3, 0.0]), 5.3) == "" and pace.since_s(5.31) < BURST_S
    assert pace.since_s(9.0) == BURST_S
    assert pace.take(np.array([0.3, 0.0]), 5.31), "the pause counts once"
