"""A UR arm on a swing through a network that a test can damage, and the twin's own record of when it moved last."""

import time

import numpy as np
import pytest

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig

REST_S = 0.5
PERIOD_S = 0.01
SPEED = 0.25  # m/s
HELD_UP_S = 0.1  # half of the silence for which the driver stops the arm; set-points are PERIOD_S apart
# On a busy computer the tests, the proxies and the twin are held up as well: the longest times that are sound.
STATE_TIMEOUT_S = 0.2
OF_TWIN = {
    "twin": True,
    "gripper": None,
    "lookahead_time_s": 0.05,
    "gain": 1500.0,
    "silence_timeout_s": 0.2,
    "state_timeout_s": STATE_TIMEOUT_S,
}
OPTIONS = {**OF_TWIN, "watchdog_hz": 5.0}


def ur(address, **parts):
    return build_arm("ur", UrConfig(address, **{**OF_TWIN, **parts}))


def wait_until(condition, limit_s, what):
    """Wait by the clock of this module, which a world in lockstep replaces."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s} s for {what}"
        time.sleep(0.002)


def stream(arm, velocity, seconds, start=None, gaps=None):
    """Stream a steady motion at ``velocity`` m/s from ``start`` or from where the arm is, ramped up in 0.2 s.

    ``gaps`` takes the times from one set-point to the next one, s.
    """
    state = arm.state()
    place = state.tool_position.copy() if start is None else start.copy()
    begin = due = last = time.monotonic()
    while time.monotonic() < begin + seconds:
        now = np.asarray(velocity) * min((time.monotonic() - begin) / 0.2, 1.0)
        place += now * PERIOD_S
        if gaps is not None:
            gaps.append(time.monotonic() - last)
        last = time.monotonic()
        arm.command(Setpoint(place, state.tool_quaternion, now, np.zeros(3)))
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))


def at_rest(arm):
    return np.abs(arm.state().joint_velocities).max() < 0.01


class Sweep:
    """Streams set-points that swing along y at a steady pace, as the arm node would, until the arm refuses.

    Attributes:
        longest_s: longest time from one set-point to the next one, to judge no sweep that the computer held up.
    """

    def __init__(self, arm):
        self.arm = arm
        arm.start()
        state = arm.state()
        self.start, self.quaternion = state.tool_position, state.tool_quaternion
        self.begin = self.due = self.last = time.monotonic()
        self.longest_s = 0.0

    def step(self):
        t = time.monotonic() - self.begin
        radius, rate = 0.1, SPEED / 0.1
        offset = radius * np.array([0.0, np.sin(rate * t), 0.0])
        velocity = SPEED * np.array([0.0, np.cos(rate * t), 0.0])
        ramp = min(t / 0.3, 1.0)
        self.last, before = time.monotonic(), self.last
        self.longest_s = max(self.longest_s, self.last - before)
        self.arm.command(Setpoint(self.start + ramp * offset, self.quaternion, ramp * velocity, np.zeros(3)))
        self.due += PERIOD_S
        time.sleep(max(0.0, self.due - time.monotonic()))

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()

    def until_refused(self, limit_s):
        end = time.monotonic() + limit_s
        with pytest.raises(ArmError) as caught:
            while time.monotonic() < end:
                self.step()
        return str(caught.value)


def judge(arm, work, network):
    """Call ``work(sweep)`` with a new sweep. What it finds wrong counts, unless the computer held up this thread.

    Then the network is healed, the arm recovered and the work done again, up to two times.
    """
    for attempt in range(3):
        sweep = Sweep(arm)
        try:
            work(sweep)
            return
        except (AssertionError, ArmError, pytest.fail.Exception):
            if attempt == 2 or sweep.longest_s < HELD_UP_S:
                raise
        network.heal()
        arm.recover()


def moved(robot):
    return int(robot.ask("last motion"))


def assert_at_rest_since(robot, event_ns, hold_ups=None):
    """The twin's own record: no joint moved later than 500 ms after the event, and none moves now.

    On sockets ``hold_ups`` measures since the event how much of that the computer kept from us all.
    """
    end = event_ns + int(REST_S * 1e9)
    while time.monotonic_ns() < end + 50_000_000:
        time.sleep(0.01)
    last = moved(robot)
    assert last > event_ns - 200_000_000, "the arm did not move before the event, so the test shows nothing"
    lost_s = 0.0 if hold_ups is None else hold_ups.lost_s
    late_ms, most_ms = (last - event_ns) / 1e6, 1000 * (REST_S + lost_s)
    assert late_ms <= most_ms, f"moved {late_ms:.0f} ms after the last sign of life; valid is up to {most_ms:.0f} ms"


def assert_recovers(arm, network):
    network.heal()
    arm.recover()
    sweep = Sweep(arm)
    sweep.run(0.2)
    assert arm.state().in_control
    assert arm.state().fault == ""
    arm.stop()
