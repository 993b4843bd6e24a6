"""The parts of the UR driver that need no robot: its reach, the stream, shared memory, states as sentences."""

import math
import mmap
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.follower import FollowerLimits
from bid_ros.control.servo import ChunkServo
from bid_ros.control.setpoint import Setpoint
from bid_ros.control.spatial import ZERO, norm, turn_between
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.task import load_task
from bid_ros.robots.registry import load_arm_config
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.follower import Pose, TimedSetpoint, UrFollower
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.protocol import MEMORY_SIZE, Mode, MotionOutcome, SharedRecord, UrMemory, UrState, shared_memory
from bid_ros.robots.ur.reach import Reach, timed
from bid_ros.robots.ur.status import UrReading, pose_from_numbers, possible, trouble
from bid_ros.robots.ur.streams import Periods
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

MS = 1_000_000
NO_TURN = (0.0, 0.0, 0.0, 1.0)
LINEAR, ANGULAR = FollowerLimits(0.5, 5.0), FollowerLimits(1.5, 15.0)


def at(pose, stamp_ns=0, velocity=ZERO, turn_rate=ZERO):
    return TimedSetpoint(stamp_ns, pose.position, pose.quaternion, velocity, turn_rate)


INITIAL = pose_from_numbers(UR5E.forward(INITIAL_Q))


def test_a_set_point_is_timed_and_checked():
    place, turn = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.6, 0.8])
    assert timed(Setpoint(place, 1.005 * turn, place, place), 7) == TimedSetpoint(
        7, (1.0, 2.0, 3.0), pytest.approx((0.0, 0.0, 0.6, 0.8)), (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)
    )
    for name in ("position", "quaternion", "linear_velocity", "angular_velocity"):
        for value in (math.nan, math.inf, -1e200):
            good = Setpoint(place, turn, place, place)
            bad = replace(good, **{name: np.append(getattr(good, name)[:-1], value)})
            with pytest.raises(ArmError, match="has a value that is not finite"):
                timed(bad, 7)


def test_reach_refuses_what_the_arm_cannot_follow_to_rest():
    config = UrConfig("a")
    reach, pose = Reach(config), INITIAL
    assert reach.refusal(at(pose), INITIAL_Q) == ""
    assert reach.refusal(at(pose, velocity=(0.0, 0.3, 0.0)), INITIAL_Q) == ""
    away = replace(pose, position=(-1.5, 0.0, 0.5))
    assert "a set-point at [-1.500, 0.000, 0.500] m has no inverse" in reach.refusal(at(away), INITIAL_Q)
    fast = at(pose, turn_rate=(0.0, 0.0, 9.0))
    assert "rad/s of joint" in reach.refusal(fast, INITIAL_Q)
    # The pose itself lies within reach, the stop from half a metre a second does not.
    edge = UR5E.forward([0.0, -0.06, 0.12, -0.06, -1.5708, 0.0])
    outwards = tuple(0.5 * edge[:3] / np.linalg.norm(edge[:3]))
    joints = [0.0, -0.06, 0.12, -0.06, -1.5708, 0.0]
    assert reach.refusal(at(pose_from_numbers(edge)), joints) == ""
    refusal = reach.refusal(at(pose_from_numbers(edge), velocity=outwards), joints)
    assert "the stop after a set-point" in refusal
    x = float(refusal.split("[")[1].split(",")[0])
    assert abs(x) > abs(edge[0]), "it names where the arm would come to rest"


def test_reach_keeps_the_joint_limits():
    low = [-6.28] * 6
    low[1] = -1.5
    assert Reach(UrConfig("robot", joint_min=tuple(low))).refusal(at(INITIAL), INITIAL_Q) == (
        "joint 2 of the robot at robot would be at -1.571 rad; valid is -1.500 to 6.283"
    )


def test_reach_keeps_room_to_brake_before_a_joint_limit():
    rate = 1.5
    config = UrConfig("a")
    stop = (config.extrapolate_s + 0.5 * rate / config.max_turn_acceleration) * rate
    for room, refused in ((0.9 * stop, True), (1.1 * stop, False)):
        high = [6.28] * 6
        high[5] = INITIAL_Q[5] + room
        # The flange looks straight down, so joint 6 turns about the base's z axis, the other way round.
        reason = Reach(UrConfig("a", joint_max=tuple(high))).refusal(
            at(INITIAL, turn_rate=(0.0, 0.0, -rate)), INITIAL_Q
        )
        assert reason.startswith("joint 6 of the robot at a would be at") == refused, reason


@pytest.mark.parametrize("joint", [0, 5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_joint_at_its_end_does_not_count_as_one_a_whole_turn_away(joint, sign):
    """The controller would have to turn back the whole way, or to pass the limit."""
    joints = list(INITIAL_Q)
    joints[joint] = sign * 6.27
    beyond = list(joints)
    beyond[joint] = sign * 6.31
    reason = Reach(UrConfig("a")).refusal(at(pose_from_numbers(UR5E.forward(beyond))), joints)
    assert reason == f"joint {joint + 1} of the robot at a would be at {sign * 6.31:.3f} rad; valid is -6.283 to 6.283"


def follower(silence_s=0.1, extrapolate_s=0.03):
    built = UrFollower(LINEAR, ANGULAR, silence_s, extrapolate_s)
    built.start(Pose(ZERO, NO_TURN), 0)
    return built


class Watch:
    """Steps a follower and checks its limits from the poses it gives."""

    def __init__(self, built, period_ns):
        self.built, self.period, self.now = built, period_ns, 0
        self.pose, self.velocity, self.turn_rate = built.step(0), np.zeros(3), np.zeros(3)

    def step(self):
        self.now += self.period
        dt = self.period / 1e9
        pose = self.built.step(self.now)
        velocity = (np.array(pose.position) - self.pose.position) / dt
        turn_rate = np.array(turn_between(self.pose.quaternion, pose.quaternion)) / dt
        assert np.linalg.norm(velocity) <= LINEAR.speed + 1e-6
        assert np.linalg.norm(turn_rate) <= ANGULAR.speed + 1e-5
        assert np.linalg.norm(velocity - self.velocity) <= LINEAR.acceleration * dt + 1e-6
        assert np.linalg.norm(turn_rate - self.turn_rate) <= ANGULAR.acceleration * dt + 1e-4
        self.pose, self.velocity, self.turn_rate = pose, velocity, turn_rate
        return pose


@pytest.mark.parametrize("period", [2 * MS, 8 * MS])
@pytest.mark.parametrize("seed", range(6))
def test_no_set_points_break_a_limit(seed, period):
    """Jumps, late ones, gaps and stops."""
    random = np.random.default_rng(seed)
    built = follower()
    watch = Watch(built, period)
    for _ in range(60):
        turn = random.normal(size=4)
        velocity, rate = random.normal(0, 0.3, 3), random.normal(0, 1.0, 3)
        stamp = watch.now - int(random.integers(0, 20)) * MS
        place = tuple(random.normal(0, 0.2, 3).tolist())
        quaternion = tuple((turn / np.linalg.norm(turn)).tolist())
        built.accept(TimedSetpoint(stamp, place, quaternion, tuple(velocity.tolist()), tuple(rate.tolist())))
        for _ in range(int(random.integers(1, 40))):
            watch.step()
        if built.silent:
            built.start(watch.pose, watch.now)
            watch.velocity = watch.turn_rate = np.zeros(3)


def test_a_steady_motion_is_followed_between_the_set_points_without_lag():
    built = follower()
    watch = Watch(built, 2 * MS)
    worst = 0.0
    for k in range(400):
        t = watch.now / 1e9
        if k % 5 == 0:
            built.accept(TimedSetpoint(watch.now, (0.2 * t, 0.0, 0.0), NO_TURN, (0.2, 0.0, 0.0), ZERO))
        x = watch.step().position[0]
        if t > 0.5:
            worst = max(worst, abs(x - 0.2 * watch.now / 1e9))
    assert worst < 2e-4


def test_silence_in_motion_brakes_and_ignores_what_comes_later():
    built = follower(0.1)
    watch = Watch(built, 8 * MS)
    while watch.now < 400 * MS:
        t = watch.now / 1e9
        built.accept(TimedSetpoint(watch.now, (0.3 * t, 0.0, 0.0), NO_TURN, (0.3, 0.0, 0.0), ZERO))
        watch.step()
    last = watch.now
    while not built.at_rest:
        watch.step()
        assert watch.now - last < 500 * MS
    assert built.silent
    assert 0.1 <= (watch.now - last) / 1e9 < 0.1 + 0.3 / LINEAR.acceleration
    place = watch.pose.position[0]
    # It stood still in the end where it was carried on to, or a little beyond if it could not come back in time.
    assert 0.0 < place - 0.3 * last / 1e9 < 0.03 * 0.3 + 0.3**2 / 2 / LINEAR.acceleration + 0.001
    built.accept(TimedSetpoint(watch.now, (0.0, 0.0, 0.0), NO_TURN, (0.3, 0.0, 0.0), ZERO))
    assert watch.step().position[0] == place


@pytest.mark.parametrize("stall_ms", [30, 60, 100, 1000])
@pytest.mark.parametrize("speed", [0.2, 0.3])
def test_a_stall_of_who_sends_set_points_does_not_drive_the_tool_through_the_floor(root, speed, stall_ms):
    """The servo keeps its own stopping point in the workspace; what is carried on without it may pass by this much."""
    task = load_task(root / "config" / "ur5_pick" / "task.yaml")
    config = load_arm_config(root / "config" / "ur5_pick" / "robot.yaml", "127.0.0.1", twin=False, name="ur")
    floor, start, down = task.limits.workspace_min[2], np.array([0.48, 0.0, 0.25]), [1.0, 0.0, 0.0, 0.0]
    actions = np.tile([*start, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.08], (15, 1))
    actions[:, 2] = np.maximum(start[2] - speed * 0.1 * np.arange(15), floor)
    lowest = 1.0
    for stalls_at in range(100, 1200, 20):
        servo = ChunkServo(task, 0.055)
        servo.start(start, down, 0)
        servo.accept(ActionChunk(0, 100 * MS, actions, source="policy", sequence=1))
        linear = FollowerLimits(config.max_speed, config.max_acceleration)
        angular = FollowerLimits(config.max_turn_rate, config.max_turn_acceleration)
        built = UrFollower(linear, angular, config.silence_timeout_s, config.extrapolate_s)
        built.start(Pose(tuple(start), tuple(down)), 0)
        for ms in range(0, 1400, 2):
            if ms % 10 == 0 and not stalls_at < ms < stalls_at + stall_ms:
                built.accept(timed(servo.step(ms * MS).setpoint, ms * MS))
            lowest = min(lowest, built.step(ms * MS).position[2])
    assert floor - lowest < speed * config.extrapolate_s + 0.001


def test_silence_at_rest_holds_the_pose():
    built = follower(0.1)
    watch = Watch(built, 8 * MS)
    built.accept(TimedSetpoint(0, (0.05, 0.0, 0.0), NO_TURN, ZERO, ZERO))
    for _ in range(12):
        watch.step()
    assert not built.silent
    built.accept(TimedSetpoint(watch.now, watch.pose.position, NO_TURN, ZERO, ZERO))
    for _ in range(5):
        built.accept(TimedSetpoint(watch.now, (0.05, 0.0, 0.0), NO_TURN, ZERO, ZERO))
        for _ in range(10):
            watch.step()
    for _ in range(100):
        watch.step()
    assert not built.silent
    assert watch.pose.position[0] == pytest.approx(0.05, abs=1e-3)


def test_a_brake_stops_on_a_line_and_stays():
    built = follower()
    watch = Watch(built, 8 * MS)
    for _ in range(30):
        built.accept(TimedSetpoint(watch.now, (1.0, 0.0, 0.0), NO_TURN, ZERO, (0.0, 0.0, 1.0)))
        watch.step()
    built.brake()
    while not built.at_rest:
        watch.step()
    assert not built.silent
    assert norm(watch.step().position) == pytest.approx(watch.pose.position[0])


def memory_of(size=MEMORY_SIZE):
    descriptor = shared_memory(size)
    return mmap.mmap(descriptor, size), descriptor


def test_a_record_that_is_being_written_is_never_taken():
    memory, descriptor = memory_of()
    writer, reader = SharedRecord(memory, 16), SharedRecord(memory, 16)
    assert reader.read() is None
    writer.write((1.0, 2.0))
    assert reader.read() == (1, (1.0, 2.0))
    memory[30] ^= 0xFF
    assert reader.read() == (1, (1.0, 2.0)), "the last whole one"
    writer.write((3.0, 4.0))
    assert reader.read() == (2, (3.0, 4.0))
    os.close(descriptor)


def test_records_are_whole_while_both_sides_are_busy():
    memory, descriptor = memory_of()
    writer, reader = SharedRecord(memory, 0), SharedRecord(memory, 0)
    done = threading.Event()

    def write():
        for k in range(20_000):
            writer.write([float(k)] * 40)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    while not done.is_set():
        record = reader.read()
        if record is not None:
            assert len(set(record[1])) == 1
            assert record[0] >= seen
            seen = record[0]
    thread.join()
    assert reader.read()[0] == 20_000
    os.close(descriptor)


def test_set_points_and_states_pass_through_memory_unchanged():
    descriptor = shared_memory(MEMORY_SIZE)
    ours, theirs = UrMemory(os.dup(descriptor)), UrMemory(descriptor)
    assert theirs.setpoint.read() is None
    assert ours.read_state() is None
    setpoint = TimedSetpoint(7, (1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    ours.setpoint.write(setpoint)
    assert theirs.setpoint.read() == (1, setpoint)
    ours.setpoint.write(None)
    assert theirs.setpoint.read() == (2, None)
    joints = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    state = UrState(1, 2, Mode.MOVING, MotionOutcome.MISSED, joints, joints, (1.0, 2.0, 3.0), NO_TURN, "größer")
    theirs.write_state(state)
    assert ours.read_state() == state
    theirs.write_state(replace(state, fault="é" * 1000))
    assert set(ours.read_state().fault) == {"é"}


def reading(**parts):
    pose = Pose((0.1, 0.2, 0.3), NO_TURN)
    good = UrReading(10.0, (0.0,) * 6, (0.0,) * 6, pose, pose, 7, 1, 2)
    return replace(good, **parts)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({}, ""),
        ({"safety_bits": 0b10}, ""),
        ({"safety_bits": 1 << 2}, "protective stop"),
        ({"safety_bits": 1 << 4}, "safeguard stop"),
        ({"safety_bits": 1 << 6 | 1 << 7 | 1 << 10}, "emergency stop by its own button"),
        ({"safety_bits": 1 << 5 | 1 << 7}, "emergency stop by the system's input"),
        ({"safety_bits": 1 << 8}, "violated a safety limit"),
        ({"safety_bits": 1 << 9}, "safety fault"),
        ({"robot_mode": 3}, "is powered off"),
        ({"robot_mode": 5}, "has its brakes engaged"),
        ({"robot_mode": 77}, "is in the unknown mode 77"),
    ],
)
def test_states_become_sentences(parts, said):
    sentence = trouble("1.2.3.4", reading(**parts))
    assert said in sentence
    assert bool(sentence) == bool(said)
    if said:
        assert sentence.startswith("robot at 1.2.3.4 ")
        assert sentence.endswith("then reset")


@pytest.mark.parametrize(
    "parts",
    [
        {"joints": (0.0, math.nan, 0.0, 0.0, 0.0, 0.0)},
        {"joints": (0.0, 1e300, 0.0, 0.0, 0.0, 0.0)},
        {"joint_speeds": (0.0, 0.0, 0.0, 0.0, 0.0, math.inf)},
        {"pose": Pose((0.0, 0.0, 9.0), NO_TURN)},
        {"pose": Pose(ZERO, (math.nan, 0.0, 0.0, 1.0))},
        {"pose": pose_from_numbers((0.0, 0.0, 0.0, 0.0, math.inf, 0.0))},
        {"robot_s": 9.0},
        {"robot_s": 1e9},
        {"robot_s": math.nan},
    ],
)
def test_a_state_that_cannot_be_is_recognised(parts):
    assert possible(reading(), reading(robot_s=9.992))
    # The one sent to is looked at where it counts, at the start.
    assert not possible(reading(**parts), reading(robot_s=9.992))


def test_random_bytes_are_no_healthy_robot_and_never_raise():
    random = np.random.default_rng(3)
    for _ in range(2000):
        numbers = np.frombuffer(random.bytes(8 * 20), dtype=np.float64).tolist()
        pose = pose_from_numbers(numbers[12:18])
        mode, bits, runtime = (int(value) for value in random.integers(-(2**31), 2**31, 3))
        joints, speeds = tuple(numbers[:6]), tuple(numbers[6:12])
        damaged = UrReading(numbers[19], joints, speeds, pose, pose, mode, bits, runtime)
        assert not possible(damaged, reading())
        assert trouble("a", damaged)


def test_periods_are_measured_within_a_following_only():
    periods = Periods(125)
    assert math.isnan(periods.statistics().p50_ms)
    for k in range(100):
        periods.sent(k * 8 * MS)
    periods.pause()
    periods.sent(10_000 * MS)
    periods.sent(10_020 * MS)
    statistics = periods.statistics()
    assert (statistics.count, statistics.p50_ms, statistics.max_ms) == (100, 8.0, 20.0)


def test_periods_of_the_last_minute_are_measured():
    random = np.random.default_rng(5)
    periods = Periods(500)
    now, measured = 0, []
    # The first ones are far longer, and fall out of the window.
    for k in range(2 * 60 * 500):
        measured.append(int((100 if k < 9000 else 2 + random.exponential(0.2)) * MS))
        periods.sent(now)
        now += measured[-1]
    periods.sent(now)
    kept = np.array(measured[-60 * 500 :]) / MS
    statistics = periods.statistics()
    assert statistics.count == kept.size
    assert statistics.p50_ms == pytest.approx(np.percentile(kept, 50), abs=0.011)
    assert statistics.p99_ms == pytest.approx(np.percentile(kept, 99), abs=0.011)
    assert statistics.max_ms == kept.max()


def test_a_very_long_period_is_told():
    periods = Periods(125)
    for now in (0, 8, 16, 400):
        periods.sent(now * MS)
    assert (periods.statistics().p50_ms, periods.statistics().p99_ms) == (8.0, 384.0)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"address": ""}, "address is empty"),
        ({"model": "ur20"}, "model is 'ur20'; valid is one of ur5e, ur5"),
        ({"rate_hz": 250}, "rate_hz is 250; valid is one of 0, 125, 500"),
        ({"lookahead_time_s": 0.3}, r"lookahead_time_s is 0\.3; valid is a number from 0\.03 to 0\.2"),
        ({"gain": 50.0}, r"gain is 50\.0; valid is a number from 100 to 2000"),
        ({"silence_timeout_s": 0.5}, r"valid is a number from 0\.02 to 0\.2"),
        ({"watchdog_hz": 1.0}, r"valid is a number from 5 to 20"),
        ({"max_acceleration": float("nan")}, "max_acceleration is nan"),
        ({"joint_min": (0.0,) * 5}, "valid is a list of 6 numbers"),
        ({"joint_max": (-6.3,) * 6}, "a joint's limits are"),
        ({"joint_max": (-7.0,) * 6}, r"joint_max\[0\] is -7\.0; valid is a number from -6\.33555 to 6\.33555"),
        ({"tool_quaternion": (1.0, 1.0, 0.0, 0.0)}, "valid is a unit quaternion"),
    ],
)
def test_impossible_configurations_are_refused(parts, said):
    with pytest.raises(ArmError, match=said):
        UrConfig(**{"address": "a", **parts})
