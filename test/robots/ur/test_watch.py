"""What is made of the states of a UR: how old they are, and when a robot counts as late, silent or stopped."""

import time

import pytest

from bid_ros.control.spatial import Pose
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.rtde import PackageError
from bid_ros.robots.ur.status import UrReading
from bid_ros.robots.ur.watch import UrWatch

PERIOD_S = 0.002
POSE = Pose((0.4, 0.0, 0.3), (1.0, 0.0, 0.0, 0.0))
TIMEOUT_S = UrConfig("a").state_timeout_s


class Robot:
    """Sends a state every period; each arrives after ``delay_s``, and its clock is faster by ``drift``."""

    rate_hz = 500

    def __init__(self, delay_s=lambda now: 0.0, drift=0.0):
        self.delay_s, self.drift, self.now, self.runtime = delay_s, drift, 100.0, 2
        self.unheard_s = lambda: 0.0
        self.joints, self.safety = (0.0,) * 6, 1

    def read(self):
        sent = self.now - self.delay_s(self.now)
        robot_s = PERIOD_S * round(sent * (1.0 + self.drift) / PERIOD_S)
        return UrReading(robot_s, self.joints, (0.0,) * 6, POSE, POSE, 7, self.safety, self.runtime)

    def clock(self):
        return round(1e9 * self.now)

    def connected(self):
        return True


def watched(robot, seconds, period_s=PERIOD_S):
    """Watch a robot; return the first finding and when it came, None and the watch if there was none."""
    begin = robot.now
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    while robot.now < begin + seconds:
        robot.now += period_s
        finding = watch.look()
        if finding is not None:
            return finding, robot.now - begin
    return None, watch


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.4])
def test_a_delay_that_grows_is_noticed_by_what_it_has_grown_to(rate):
    finding, after_s = watched(Robot(lambda now: 0.02 + rate * (now - 100.0)), 60.0)
    assert finding.lost and finding.silent
    assert "robot at a is heard 0.15 s late: check what delays its network, then reset" in finding.reason
    assert after_s * rate == pytest.approx(TIMEOUT_S, rel=0.1)


@pytest.mark.parametrize("drift", [-3e-4, 3e-4])
def test_clocks_that_differ_in_pace_are_no_delay(drift):
    finding, watch = watched(Robot(drift=drift), 600.0, 0.05)
    assert finding is None
    assert round(1e9 * 700.0) - watch.state_ns < 10_000_000


def test_a_delay_that_stays_is_carried_and_one_that_shrinks_is_the_new_measure():
    finding, watch = watched(Robot(lambda now: 0.1 if now < 130.0 else 0.0), 60.0, 0.02)
    assert finding is None
    assert round(1e9 * 160.0) - watch.state_ns < 10_000_000


def test_silence_is_told_from_delay():
    finding, after_s = watched(Robot(lambda now: max(0.0, now - 101.0)), 60.0)
    assert finding.lost and finding.silent
    assert finding.reason == "robot at a has been silent for 0.15 s: check cable and power, then reset"
    assert after_s == pytest.approx(1.0 + TIMEOUT_S, abs=0.01)


def twin_watch(robot):
    return UrWatch(UrConfig("a", twin=True), robot, robot.clock)


def looks(robot, watch, seconds, at_rest):
    """Look for some seconds; return the first finding and after how long it came, None and the seconds without one."""
    begin = robot.now
    while robot.now < begin + seconds:
        robot.now += PERIOD_S
        finding = watch.look(at_rest)
        if finding is not None:
            return finding, robot.now - begin
    return None, seconds


def test_a_twin_at_rest_may_be_held_up_for_two_seconds():
    robot = Robot(lambda now: max(0.0, now - 101.0))
    finding, after_s = looks(robot, twin_watch(robot), 60.0, at_rest=True)
    assert finding.lost and finding.silent
    assert finding.reason == (
        "robot at a has been silent for 2.00 s: it is a twin, so find what keeps this computer busy, then reset"
    )
    assert after_s == pytest.approx(3.0, abs=0.01)


def test_a_robot_at_rest_is_no_less_heard_than_one_that_moves():
    robot = Robot(lambda now: max(0.0, now - 101.0))
    finding, after_s = looks(robot, UrWatch(UrConfig("a"), robot, robot.clock), 60.0, at_rest=True)
    assert "has been silent for 0.15 s" in finding.reason
    assert after_s == pytest.approx(1.0 + TIMEOUT_S, abs=0.01)


def test_a_twin_that_moves_is_lost_as_a_robot_is_and_its_rest_does_not_count():
    """It is held up at rest, and still when it is to move: the limit of motion begins then."""
    robot = Robot(lambda now: max(0.0, now - 101.0))
    watch = twin_watch(robot)
    assert looks(robot, watch, 1.4, at_rest=True) == (None, 1.4)
    finding, after_s = looks(robot, watch, 60.0, at_rest=False)
    assert finding.lost and finding.silent
    assert after_s == pytest.approx(TIMEOUT_S, abs=0.01)


def test_a_twin_that_was_held_up_at_rest_goes_on():
    robot = Robot(lambda now: max(0.0, now - 101.0) if now < 102.9 else 0.0)
    watch = twin_watch(robot)
    assert looks(robot, watch, 3.0, at_rest=True) == (None, 3.0)
    assert looks(robot, watch, 3.0, at_rest=False) == (None, 3.0)


def test_a_twin_that_stood_is_not_late_by_the_time_that_it_stood():
    """It is silent for 0.12 s, and reports a set-point after 0.2 s. A robot is held to that."""
    robot = Robot(lambda now: max(0.0, now - 101.0) if now < 101.12 else 0.0)
    robot.unheard_s = lambda: min(0.2, max(0.0, robot.now - 100.95)) if robot.now < 101.3 else 0.0
    assert looks(robot, twin_watch(robot), 2.0, at_rest=False) == (None, 2.0)
    robot.now = 100.0
    finding, _ = looks(robot, UrWatch(UrConfig("a"), robot, robot.clock), 2.0, at_rest=False)
    assert "hears us 0.15 s late" in finding.reason or "has been silent" in finding.reason


@pytest.mark.parametrize("caught_up_s", [0.004, 0.1])
@pytest.mark.parametrize("held_s", [0.16, 0.4, 3.0])
@pytest.mark.parametrize("twin", [False, True])
def test_a_process_that_was_held_up_itself_calls_no_robot_silent_or_late(twin, held_s, caught_up_s):
    """It looks before ur_rtde's thread has read what came meanwhile, and while that catches up."""
    begin, end = 100.5, 100.5 + held_s

    def delay_s(now):
        if not begin < now < end + caught_up_s:
            return 0.0
        return now - begin - (held_s + caught_up_s) * max(0.0, now - end) / caught_up_s

    robot = Robot(delay_s)
    watch = UrWatch(UrConfig("a", twin=twin), robot, robot.clock)
    assert looks(robot, watch, 0.5, at_rest=False) == (None, 0.5)
    robot.now = end
    assert looks(robot, watch, 2.0, at_rest=False) == (None, 2.0)


def test_a_robot_that_fell_silent_while_this_process_was_held_up_is_found_in_the_time_of_its_limit():
    robot = Robot(lambda now: max(0.0, now - 100.5))
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    assert looks(robot, watch, 0.5, at_rest=False) == (None, 0.5)
    robot.now += 0.4
    finding, after_s = looks(robot, watch, 60.0, at_rest=False)
    assert finding.silent and after_s == pytest.approx(TIMEOUT_S - 0.03, abs=0.01)
    assert finding.reason == "robot at a has been silent for 0.15 s: check cable and power, then reset"


def test_a_state_is_as_old_by_the_clocks_of_others():
    robot = Robot(lambda now: min(0.1, 0.1 * (now - 100.0)))
    finding, watch = watched(robot, 2.0)
    assert finding is None
    for clock_ns, instant_ns in ((time.time_ns(), watch.stamp_ns), (time.monotonic_ns(), watch.steady_ns)):
        assert 0.09 < (clock_ns - instant_ns) / 1e9 < 0.6


def test_states_grow_no_older_from_one_to_the_next():
    jitter = iter([0.03, 0.0, 0.02, 0.01, 0.0, 0.03] * 100)
    robot = Robot(lambda now: next(jitter))
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    stamps = []
    for _ in range(500):
        robot.now += 0.05
        assert watch.look() is None
        stamps.append(watch.state_ns)
    assert stamps == sorted(stamps)


def test_a_program_that_does_not_run_has_one_sentence():
    robot = Robot()
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    assert watch.why_stopped() == ""
    robot.now, robot.runtime = robot.now + 1.0, 1
    watch.look()
    assert watch.why_stopped().startswith("robot at a stopped our program: look at the pendant, whether it is in local")


def test_set_points_that_arrive_late_are_noticed_by_what_the_robot_shows():
    robot = Robot()
    robot.unheard_s = lambda: 0.1 * (robot.now - 100.0)
    finding, after_s = watched(robot, 60.0)
    assert finding.lost and finding.silent
    assert finding.reason == "robot at a hears us 0.15 s late: check what delays its network, then reset"
    assert after_s == pytest.approx(10 * TIMEOUT_S, abs=0.01)


def test_a_robot_that_is_silent_is_not_called_late():
    robot = Robot(lambda now: max(0.0, now - 101.0))
    robot.unheard_s = lambda: max(0.0, robot.now - 100.98)
    finding, _ = watched(robot, 60.0)
    assert finding.reason == "robot at a has been silent for 0.15 s: check cable and power, then reset"


@pytest.mark.parametrize(
    ("error", "lost", "words"),
    [
        (ConnectionError("closed"), True, "closed the connection"),
        (PackageError("an RTDE package of size 0"), False, "sent a state that cannot be"),
    ],
)
def test_an_echo_that_is_lost_or_damaged_is_the_robots_fault(error, lost, words):
    def unheard_s():
        raise error

    robot = Robot()
    robot.unheard_s = unheard_s
    finding, _ = watched(robot, 1.0)
    assert finding.lost is lost
    assert words in finding.reason


def test_a_clock_that_runs_too_fast_is_a_contradiction_and_no_state_after_it_is_handed_on():
    robot = Robot(drift=1.0)
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    while (finding := watch.look()) is None:
        robot.now += PERIOD_S
        assert robot.now < 101.0
    assert robot.now - 100.0 == pytest.approx(TIMEOUT_S, abs=0.01)
    assert finding.doubtful and not finding.lost
    assert finding.reason == (
        "robot at a contradicts itself, its clock gained 0.15 s on this computer's; valid is up to 0.15 s: compare it "
        "with what the pendant shows, then reset"
    )
    believed = watch.reading
    robot.now += 1.0
    assert watch.look().reason == finding.reason
    assert watch.reading == believed


def test_a_protective_stop_is_told_before_any_contradiction():
    robot = Robot()
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    robot.now += PERIOD_S
    robot.joints, robot.safety = (1.0,) * 6, 1 << 2
    finding = watch.look()
    assert "made a protective stop" in finding.reason and not finding.doubtful


def test_a_tool_that_does_not_follow_is_a_contradiction():
    robot = Robot()
    watch = UrWatch(UrConfig("a"), robot, robot.clock)
    watch.begin(POSE)
    place = 0.0
    while (finding := watch.look()) is None:
        place += 0.25 * PERIOD_S
        robot.now += PERIOD_S
        watch.sent(Pose((0.4, place, 0.3), POSE.quaternion))
        assert robot.now < 101.0
    assert finding.doubtful
    assert "off the set-points of the last 0.15 s, though no joint moves" in finding.reason
    assert robot.now - 100.0 < 0.3
