import math
import time
from pathlib import Path

import numpy as np
import pytest

from bid_ros.control.servo import ChunkServo
from bid_ros.control.servo_base import MAX_STEP_S, ServoMode
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError, TaskError
from bid_ros.core.rotation import matrix_from_quaternion, matrix_from_vector, matrix_to_6d, vector_from_matrix
from bid_ros.core.task import load_task, parse_task

TASK = load_task(Path(__file__).resolve().parents[2] / "config" / "franka_place" / "task.yaml")
LIMITS = TASK.limits
MS = 1_000_000
TICK = 10 * MS
DT = TASK.dt_ns
DOWN = np.array([1.0, 0.0, 0.0, 0.0])
START = np.array([0.5, 0.0, 0.3])


def rows(positions, turns=None, widths=None):
    """Actions (H, 10) from positions (H, 3), rotation vectors (H, 3) away from straight down, and widths (H,)."""
    positions = np.asarray(positions, dtype=float)
    count = len(positions)
    turns = np.zeros((count, 3)) if turns is None else np.asarray(turns, dtype=float)
    widths = np.full(count, 0.04) if widths is None else np.asarray(widths, dtype=float)
    down = matrix_from_quaternion(DOWN)
    six = np.array([matrix_to_6d(matrix_from_vector(turn) @ down) for turn in turns])
    return np.column_stack([positions, six, widths])


def chunk(stamp_ns, positions, sequence=0, source="policy", **parts):
    return ActionChunk(stamp_ns, DT, rows(positions, **parts), source=source, sequence=sequence)


def line(start, velocity, count=15):
    return np.asarray(start) + np.arange(count)[:, None] * (DT / 1e9) * np.asarray(velocity)


def started(task=TASK):
    servo = ChunkServo(task)
    servo.start(START, DOWN, 0)
    return servo


def run(servo, begin_ns, end_ns, tick_ns=TICK):
    return [servo.step(now) for now in range(begin_ns + tick_ns, end_ns + 1, tick_ns)]


def speed(output):
    return float(np.linalg.norm(output.setpoint.linear_velocity))


class Replay:
    """Steps a servo and checks every limit, from the positions it commands and not only from what it says."""

    def __init__(self, servo, now_ns=0):
        self.servo, self.now = servo, now_ns
        self.last = servo.step(now_ns)

    def step(self, dt_ns):
        self.now += dt_ns
        output = self.servo.step(self.now)
        self.check(self.last.setpoint, output.setpoint, dt_ns / 1e9)
        self.last = output
        return output

    @staticmethod
    def check(before, after, dt):
        moved = (after.position - before.position) / dt
        turned = matrix_from_quaternion(after.quaternion) @ matrix_from_quaternion(before.quaternion).T
        turn = vector_from_matrix(turned) / dt
        assert np.allclose(moved, after.linear_velocity, atol=1e-9)
        assert np.allclose(turn, after.angular_velocity, atol=1e-6)
        assert np.linalg.norm(moved) <= LIMITS.max_speed + 1e-6
        assert np.linalg.norm(turn) <= LIMITS.max_turn_rate + 1e-6
        change = np.linalg.norm(after.linear_velocity - before.linear_velocity) / dt
        assert change <= LIMITS.max_acceleration + 1e-6
        turn_change = np.linalg.norm(after.angular_velocity - before.angular_velocity) / dt
        assert turn_change <= LIMITS.max_turn_acceleration + 1e-6
        assert np.all(after.position >= np.array(LIMITS.workspace_min) - 1e-9)
        assert np.all(after.position <= np.array(LIMITS.workspace_max) + 1e-9)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 12))])
def test_no_sequence_of_chunks_breaks_a_limit(seed):
    """Jumps, chunks outside the workspace, gaps, reordering, other sources, latches and uneven ticks."""
    random = np.random.default_rng(seed)
    replay = Replay(started())
    sequence = 0
    for _ in range(40):
        kind = random.integers(6)
        stamp = replay.now + int(random.integers(-400, 200)) * MS
        center = random.uniform([0.2, -0.4, -0.1], [0.8, 0.4, 0.7])
        positions = center + np.cumsum(random.normal(0, [0.0, 0.02, 0.3][seed % 3], (15, 3)), axis=0)
        turns = np.cumsum(random.normal(0, 0.3, (15, 3)), axis=0)
        if kind < 4:
            sequence += 1
            source = "policy" if kind < 3 else "teleop"
            replay.servo.accept(chunk(stamp, positions, sequence, source, turns=turns))
        elif kind == 4:
            replay.servo.latch("test")
        else:
            replay.servo.reset()
        for _ in range(int(random.integers(1, 40))):
            replay.step(int(random.integers(1, 15)) * MS)


@pytest.mark.parametrize("direction", [(1, 0, 0), (-1, 1, 0), (0.3, -0.5, -1)])
def test_a_fast_chunk_into_the_wall_stops_at_the_wall(direction):
    servo = started()
    velocity = 0.49 * np.array(direction) / np.linalg.norm(direction)
    replay = Replay(servo)
    for k in range(30):
        servo.accept(chunk(replay.now, line(START + velocity * k / 10, velocity), k + 1))
        for _ in range(10):
            output = replay.step(TICK)
    low, high = np.array(LIMITS.workspace_min), np.array(LIMITS.workspace_max)
    wall = np.clip(START + velocity * 10, low, high)
    assert np.allclose(output.setpoint.position, wall, atol=1e-3)


def test_a_pose_outside_the_workspace_never_moves_further_out():
    servo = ChunkServo(TASK)
    servo.start([0.75, 0.0, 0.3], DOWN, 0)
    servo.accept(chunk(0, line([0.8, 0.1, 0.3], [0.0, 0.0, 0.0])))
    outputs = run(servo, 0, 1_400 * MS)
    xs = [output.setpoint.position[0] for output in outputs]
    assert max(xs) <= 0.75
    assert xs == sorted(xs, reverse=True)
    assert xs[-1] == pytest.approx(LIMITS.workspace_max[0], abs=1e-3)


def test_a_late_step_does_not_jump():
    servo = started()
    servo.accept(chunk(0, line(START, [0.3, 0.0, 0.0])))
    before = run(servo, 0, 500 * MS)[-1]
    after = servo.step(700 * MS)
    moved = np.linalg.norm(after.setpoint.position - before.setpoint.position)
    assert moved <= LIMITS.max_speed * MAX_STEP_S


def test_a_smooth_chunk_is_followed_with_little_lag():
    """A quarter of a turn at 0.2 m/s, chunks renewed ten times a second as a policy would."""
    servo = started()
    radius, rate = 0.1, 2.0

    def place(t):
        return START + radius * np.array([math.sin(rate * t), 1 - math.cos(rate * t), 0.0])

    lags = []
    for now in range(0, 2_000 * MS, TICK):
        if now % DT == 0:
            # Each chunk arrives 80 ms after the observation it is stamped with.
            stamp = now - 80 * MS
            times = stamp / 1e9 + np.arange(15) * 0.1
            servo.accept(chunk(stamp, [place(t) for t in times], now // DT))
        output = servo.step(now)
        if now > 500 * MS:
            t = now / 1e9
            along = np.array([math.cos(rate * t), math.sin(rate * t), 0.0])
            lags.append(np.dot(place(t) - output.setpoint.position, along) / (radius * rate))
    assert max(np.abs(lags)) < 0.020


def test_a_jump_of_the_target_is_approached_without_overshoot():
    servo = started()
    goal = START + np.array([0.1, 0.0, 0.0])
    servo.accept(chunk(0, np.tile(goal, (15, 1))))
    xs = [output.setpoint.position[0] for output in run(servo, 0, 1_400 * MS)]
    assert max(xs) <= goal[0] + 1e-6
    assert xs[-1] == pytest.approx(goal[0], abs=1e-4)


def test_rotation_follows_the_shortest_way():
    servo = started()
    turns = np.outer(np.arange(15), [0.0, 0.0, 0.05])
    servo.accept(chunk(0, np.tile(START, (15, 1)), turns=turns))
    output = run(servo, 0, 1_000 * MS)[-1]
    turned = matrix_from_quaternion(output.setpoint.quaternion) @ matrix_from_quaternion(DOWN).T
    assert vector_from_matrix(turned) == pytest.approx([0.0, 0.0, 0.5], abs=0.01)
    assert output.setpoint.angular_velocity == pytest.approx([0.0, 0.0, 0.5], abs=0.02)


def test_a_late_chunk_drops_the_steps_that_have_passed():
    servo = started()
    servo.accept(chunk(-500 * MS, line(START - [0.1, 0.0, 0.0], [0.2, 0.0, 0.0]), widths=np.linspace(0.0, 0.07, 15)))
    first = servo.step(TICK)
    # Row 5 of 15 is the one for now: the arm must not go back to row 0, which lies 0.1 m behind it.
    assert first.gripper_width == pytest.approx(0.025)
    assert first.command_age_s == pytest.approx(0.51)
    assert min(output.setpoint.position[0] for output in run(servo, TICK, 400 * MS)) >= START[0]


def test_a_chunk_that_begins_later_waits_while_the_present_one_goes_on():
    servo = started()
    servo.accept(chunk(0, line(START, [0.1, 0.0, 0.0]), sequence=1))
    servo.accept(chunk(150 * MS, line(START, [0.0, 0.1, 0.0]), sequence=2))
    servo.accept(chunk(250 * MS, line(START, [0.0, 0.1, 0.0]), sequence=3))
    followed = [output.sequence for output in run(servo, 0, 300 * MS)]
    assert [followed[i] for i in (13, 14, 23, 24)] == [1, 2, 2, 3]


def test_chunks_that_arrive_out_of_order_are_ignored():
    servo = started()
    assert servo.accept(chunk(200 * MS, line(START, [0, 0, 0]), sequence=5))
    assert not servo.accept(chunk(100 * MS, line(START, [0.1, 0, 0]), sequence=4))
    assert not servo.accept(chunk(200 * MS, line(START, [0.1, 0, 0]), sequence=5))
    assert servo.accept(chunk(200 * MS, line(START, [0, 0, 0]), sequence=6))
    assert servo.accept(chunk(300 * MS, line(START, [0, 0, 0]), sequence=0)), "a restarted source counts from 0"
    assert servo.accept(chunk(250 * MS, line(START, [0, 0, 0]), sequence=1, source="teleop"))


@pytest.mark.parametrize("actions", [np.full((15, 10), np.nan), np.zeros((15, 9))])
def test_a_chunk_that_no_arm_could_follow_is_ignored(actions):
    assert not started().accept(ActionChunk(0, DT, actions))


def test_silence_begins_a_stop_within_its_bound_and_the_next_chunk_goes_on():
    servo = started()
    velocity = np.array([0.3, 0.0, 0.0])
    servo.accept(chunk(0, line(START, velocity, count=4)))
    replay = Replay(servo)
    outputs = [replay.step(TICK) for _ in range(120)]
    end = 400 * MS
    stopping = [i for i, output in enumerate(outputs) if output.mode is not ServoMode.TRACKING]
    begun = (stopping[0] + 1) * TICK - end
    assert 0 < begun < 200 * MS
    assert outputs[-1].mode is ServoMode.HOLDING
    assert speed(outputs[-1]) == 0.0
    assert outputs[-1].gripper_width is None
    assert math.isnan(outputs[-1].command_age_s)
    servo.accept(chunk(replay.now, line(outputs[-1].setpoint.position, velocity), sequence=1))
    assert replay.step(TICK).mode is ServoMode.TRACKING


def test_silence_in_full_motion_ends_at_rest_within_300_ms():
    """The clock of the chunks runs away, as after a step of wall time: nothing covers now while the arm moves."""
    servo = started()
    servo.accept(chunk(0, line(START - [0.15, 0, 0], [0.45, 0.0, 0.0], count=15)))
    run(servo, 0, 400 * MS)
    moving = servo.step(410 * MS)
    assert speed(moving) > 0.4
    far = 10_000_000 * MS
    replay = Replay.__new__(Replay)
    replay.servo, replay.now, replay.last = servo, far, servo.step(far)
    outputs = [replay.step(TICK) for _ in range(30)]
    assert outputs[0].mode is ServoMode.STOPPING
    assert speed(outputs[-1]) == 0.0
    assert outputs[-1].mode is ServoMode.HOLDING


def test_a_latched_stop_brakes_at_the_limit_and_stays_until_reset():
    servo = started()
    servo.accept(chunk(0, line(START - [0.15, 0, 0], [0.45, 0.0, 0.0])))
    replay = Replay(servo)
    for _ in range(40):
        moving = replay.step(TICK)
    servo.latch("heartbeat of safety is old")
    servo.latch("a later reason")
    assert servo.latched == "heartbeat of safety is old"
    steps = 0
    while replay.step(TICK).mode is not ServoMode.STOPPED:
        assert replay.last.mode is ServoMode.STOPPING
        steps += 1
    assert steps * TICK / 1e9 <= speed(moving) / LIMITS.max_acceleration + 0.02
    assert not servo.accept(chunk(replay.now, line(START, [0.1, 0, 0]), sequence=9))
    assert replay.step(TICK).mode is ServoMode.STOPPED
    servo.reset()
    assert replay.step(TICK).mode is ServoMode.HOLDING
    assert servo.accept(chunk(replay.now, line(START, [0.1, 0, 0]), sequence=1)), "a reset leaves nothing behind"
    assert replay.step(TICK).mode is ServoMode.TRACKING


def test_a_release_brakes_at_the_limit_and_latches_nothing():
    servo = started()
    servo.accept(chunk(0, line(START - [0.15, 0, 0], [0.45, 0.0, 0.0])))
    assert servo.source == "policy"
    replay = Replay(servo)
    for _ in range(40):
        moving = replay.step(TICK)
    servo.release()
    assert servo.source == "" and servo.latched == ""
    steps = 0
    while replay.step(TICK).mode is not ServoMode.HOLDING:
        assert replay.last.mode is ServoMode.STOPPING
        steps += 1
    assert steps * TICK / 1e9 <= speed(moving) / LIMITS.max_acceleration + 0.02
    assert servo.accept(chunk(replay.now, line(START, [0.1, 0, 0])))
    assert replay.step(TICK).mode is ServoMode.TRACKING


def test_a_latched_stop_outlives_a_release():
    servo = started()
    servo.latch("the cup is on fire")
    servo.release()
    assert servo.latched and not servo.accept(chunk(0, line(START, [0.1, 0, 0])))


def test_a_clock_that_stands_still_or_goes_back_commands_no_motion():
    servo = started()
    servo.accept(chunk(0, line(START, [0.3, 0.0, 0.0])))
    before = run(servo, 0, 300 * MS)[-1]
    for now in (300 * MS, 200 * MS):
        after = servo.step(now)
        assert np.array_equal(after.setpoint.position, before.setpoint.position)


def test_a_task_without_rotation_and_gripper_keeps_the_orientation():
    content = {
        "name": "reach",
        "robot": "franka",
        "rate_hz": 10,
        "observation_steps": 1,
        "horizon": 8,
        "observation": [{"name": "tool", "kind": "position"}],
        "action": [{"name": "tool", "kind": "position"}],
        "limits": {"workspace_min": [0.3, -0.3, 0.0], "workspace_max": [0.7, 0.3, 0.6]},
    }
    servo = started(parse_task(content))
    servo.accept(ActionChunk(0, DT, line(START, [0.1, 0.0, 0.0])))
    output = run(servo, 0, 500 * MS)[-1]
    assert output.setpoint.quaternion == pytest.approx(DOWN)
    assert output.gripper_width is None
    content["action"] = [{"name": "q", "kind": "joints"}]
    with pytest.raises(TaskError, match="commands joints; valid is a position"):
        ChunkServo(parse_task(content))


def test_bad_use_is_one_sentence():
    with pytest.raises(ArmError, match="call start first"):
        ChunkServo(TASK).step(0)
    with pytest.raises(ArmError, match=r"servo: lookahead_s is 0\.5 s; valid is 0 to 0\.3"):
        ChunkServo(TASK, 0.5)


def test_a_step_is_quick():
    servo = started()
    servo.accept(chunk(0, line(START, [0.1, 0.05, 0.0]), turns=np.outer(np.arange(15), [0.02, 0.0, 0.05])))
    durations = []
    for now in range(0, 1_400 * MS, MS):
        begin = time.perf_counter_ns()
        servo.step(now)
        durations.append(time.perf_counter_ns() - begin)
    assert np.median(durations) < 150_000, f"{np.median(durations) / 1000:.0f} us"


def test_lookahead_samples_the_chunk_ahead_of_now():
    """With a lookahead the set-point follows where the chunk will be, so a lagging arm is where the chunk is."""
    rows = np.tile([0.45, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.04], (15, 1))
    rows[:, 0] += 0.01 * np.arange(15)  # 0.1 m/s
    positions = {}
    for lookahead in (0.0, 0.1):
        servo = ChunkServo(TASK, lookahead)
        servo.start(rows[0, :3], [1.0, 0.0, 0.0, 0.0], 0)
        servo.accept(ActionChunk(0, 100_000_000, rows))
        for now in range(0, 800_000_000, 10_000_000):
            positions[lookahead] = servo.step(now).setpoint.position[0]
    assert positions[0.1] - positions[0.0] == pytest.approx(0.01, abs=1e-3)
