"""What test_fast_franky_sim cannot show: that it is the same as franky-sim's to the last bit."""

import numpy as np
import pinocchio
import pytest
from franky_sim.base_simulator import InnerRobotState

from bid_ros.robots.franka.tracked import NEW, Component, PoseRate, Rate, TrackedState

STILL = InnerRobotState((0.0,) * 7, (0.0,) * 7, (0.0,) * 7)


def tracked():
    return TrackedState(lambda q: pinocchio.SE3.Identity(), lambda q, dq: np.zeros(6))


def test_rate_is_zero_at_first_and_then_filtered() -> None:
    rate = Rate()
    rate.update(0.0, [1.0, 1.0])
    assert rate.value == [0.0, 0.0]
    rate.update(0.001, [1.0, 1.001])
    assert rate.value == pytest.approx([0.0, NEW])


def test_rate_of_a_pose_is_its_twist() -> None:
    rate, moved = PoseRate(), pinocchio.SE3(pinocchio.rpy.rpyToMatrix(0.0, 0.0, 0.002), np.array([0.001, 0.0, 0.0]))
    rate.update(0.0, pinocchio.SE3.Identity())
    rate.update(0.001, moved)
    np.testing.assert_allclose(rate.value, [NEW, 0, 0, 0, 0, 2 * NEW], atol=1e-12)


def test_repeated_command_does_not_change_the_rate() -> None:
    component = Component(Rate())
    component.finish(0.0, [0.0])
    component.set(0.001, np.array([1.0]), call_observers=False)
    assert component.finish(0.001, [0.0]) == [1.0] and component.explicit and component.rate == [0.0]
    assert component.finish(0.002, [0.5]) == [0.5] and not component.explicit and component.rate != [0.0]


def test_state_before_the_first_step_and_step_without_torques_are_refused() -> None:
    parts = tracked()
    with pytest.raises(ValueError, match="no step has been made yet"):
        parts["q_d"].get(0.0)
    with pytest.raises(ValueError, match="no torque was set for this step"):
        parts.finish(0.0, STILL)
    parts["tau_J_d"].set(0.001, np.zeros(7))
    parts.finish(0.001, STILL)
    assert parts["q_d"].get(0.001) == [0.0] * 7
