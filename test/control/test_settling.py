"""A stopped, compliant arm holds where it is: a mass on the spring and damper of an impedance controller shows it."""

from dataclasses import dataclass

import numpy as np
import pytest

from bid_ros.control.servo_base import ServoMode, ServoOutput
from bid_ros.control.setpoint import Setpoint
from bid_ros.control.settling import WITHIN_NS, Settling

KG, STIFFNESS, BRAKE = 8.0, 2500.0, 5.0  # N/m, m/s^2
LOW, HIGH = (-1.0, -1.0, 0.0), (1.0, 1.0, 1.0)
TICK_MS, LATE_MS = 10, 4
TURN = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass
class State:
    stamp_ns: int
    tool_position: np.ndarray


def step(mode, place, speed=0.0):
    velocity = np.array([speed, 0.0, 0.0])
    return ServoOutput(Setpoint(place, TURN, velocity, np.zeros(3)), None, mode, "", 0, float("nan"))


class Arm:
    """A tool that follows a set-point along x, which brakes from ``speed``. It has no lag at first."""

    def __init__(self, speed, settling):
        self.ms, self.x, self.v, self.target, self.rate, self.held = 0, 0.5, speed, 0.5, speed, None
        self._settling, self._seen = settling, []

    def tool(self):
        return np.array([self.x, 0.0, 0.5])

    def state(self):
        return self._seen[max(0, len(self._seen) - 1 - LATE_MS)]

    def live(self, seconds):
        """Return the s until the tool is slower than 5 mm/s for good."""
        fast = 0
        for ms in range(round(1000 * seconds)):
            self._seen.append(State(self.ms * 1_000_000, self.tool()))
            if self.ms % TICK_MS == 0:
                self.control()
            self.target += 0.001 * self.rate
            pull = STIFFNESS * (self.target - self.x) + 2 * np.sqrt(STIFFNESS * KG) * (self.rate - self.v)
            self.v += 0.001 * pull / KG
            self.x += 0.001 * self.v
            self.ms += 1
            fast = ms if abs(self.v) > 0.005 else fast
        return fast / 1000

    def control(self):
        self.rate = max(0.0, self.rate - BRAKE * TICK_MS / 1000)
        mode = ServoMode.STOPPED if self.rate == 0.0 else ServoMode.STOPPING
        if self._settling and self._settling.due(step(mode, np.array([self.target, 0.0, 0.5])), self.state):
            self.held = self.target = float(self.state().tool_position[0])


@pytest.mark.parametrize("speed", [0.2, 0.3, 0.45])
def test_an_arm_that_holds_where_it_is_rests_sooner_than_one_that_swings_back(speed):
    swung, held = Arm(speed, None), Arm(speed, Settling(LOW, HIGH))
    free_s, held_s = swung.live(1.0), held.live(1.0)
    assert held.held is not None
    assert held_s < 0.75 * free_s
    assert abs(held.x - held.held) < 1e-3


def test_an_arm_outside_its_workspace_is_pulled_back():
    low, high = LOW, (0.501, 1.0, 1.0)
    arm = Arm(0.3, Settling(low, high))
    arm.live(1.0)
    assert arm.held is None and arm.x == pytest.approx(arm.target, abs=1e-3)


def due(settling, mode, off_m, at_ns, low_m=0.0):
    state = State(at_ns, np.array([0.5 + off_m, 0.0, 0.5 - low_m]))
    return settling.due(step(mode, np.array([0.5, 0.0, 0.5])), lambda: state)


def stopped(settling, places, at, low_m=0.0):
    """What is due while the tool is at these m from its set-point, 10 ms apart, and ``low_m`` below it."""
    return [due(settling, ServoMode.STOPPED, off, next(at), low_m) for off in places]


def test_it_holds_twice_a_stop_and_again_after_a_reset():
    settling, at = Settling(LOW, HIGH), iter(range(0, 10**10, 10_000_000))
    for _ in range(2):
        held = stopped(settling, [0.006, *[0.008] * 12], at)
        assert held == [False, False, True, *[False] * 5, True, *[False] * 4]
        assert not due(settling, ServoMode.TRACKING, 0.0, next(at))


def test_a_load_that_nobody_told_of_does_not_pull_it_down_again_and_again():
    at = iter(range(0, 10**10, 10_000_000))
    assert not any(stopped(Settling(LOW, HIGH), [0.0] * 40, at, low_m=0.005)), "it did not move"
    assert sum(stopped(Settling(LOW, HIGH), [0.006, *[0.008] * 40], at, low_m=0.005)) == 1


def test_an_arm_that_turned_back_is_held_though_it_is_not_slow():
    outward, back = Settling(LOW, HIGH), Settling(LOW, HIGH)
    places = [0.006, 0.007, 0.008]  # m from the set-point, 10 ms apart
    assert not any(due(outward, ServoMode.STOPPED, off, n * 10_000_000) for n, off in enumerate(places))
    turned = [due(back, ServoMode.STOPPED, off, n * 10_000_000) for n, off in enumerate(places[::-1])]
    assert turned == [False, True, False]


def test_nothing_is_held_near_the_set_point_in_motion_or_long_after_the_stop():
    settling = Settling(LOW, HIGH)
    near = [due(settling, ServoMode.STOPPED, 0.0005, n * 10_000_000) for n in range(20)]
    moving = [due(settling, ServoMode.STOPPED, 0.002 * n, (20 + n) * 10_000_000) for n in range(20)]
    pushed = [due(settling, ServoMode.STOPPED, 0.02, WITHIN_NS + n * 10_000_000) for n in range(1, 20)]
    assert not any([*near, *moving, *pushed])
    assert not due(Settling(LOW, HIGH), ServoMode.HOLDING, 0.01, 0)
