"""The drive keeps every limit of the task whatever a person does, and its chunks end at rest."""

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, matrix_to_6d
from bid_ros.safety.envelope import Envelope
from bid_ros.system.folder import find_system
from bid_ros.teleop.base import Command, Offset, Steering
from bid_ros.teleop.drive import Drive

TASK = find_system("franka_place").task
AT, DOWN = np.array([0.48, 0.0, 0.30]), np.array([1.0, 0.0, 0.0, 0.0, -1.0, 0.0])
STEP_NS, ROWS, DT_NS = 25_000_000, 12, 50_000_000
FREE = Steering(locked=())


def towards(**axes: float) -> Command:
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    return Command(True, np.array([axes.get(name, 0.0) for name in names]))


class Driven:
    """A drive that is asked for a chunk every 25 ms."""

    def __init__(self, steering: Steering | None = None) -> None:
        self.drive, self.steering, self.now_ns = Drive(TASK), steering or Steering(), 10**18
        self.drive.hold(AT, DOWN, 0.04, self.now_ns)

    def ask(self, command: Command, times: int = 1) -> np.ndarray:
        for _ in range(times):
            self.now_ns += STEP_NS
            self.chunk = self.drive.chunk(command, self.steering, self.now_ns, ROWS, DT_NS)
        return self.chunk.actions


@pytest.mark.parametrize("frame", ["base", "tool"])
def test_a_person_who_steers_as_seen_goes_the_same_way_whatever_the_frame_and_what_is_locked_stays(frame):
    axes = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # ahead is at the base's +y
    seen = replace(towards(x=1.0), axes=axes)
    driven = Driven(Steering(frame=frame))
    moved = driven.ask(seen, times=40)[0, :3] - AT
    assert moved[1] > 0.05 and abs(moved[0]) < 1e-6 and abs(moved[2]) < 1e-6
    kept = Driven(Steering(frame=frame, locked=("y",)))
    np.testing.assert_allclose(kept.ask(seen, times=40)[0, :3], AT, atol=1e-9)


@pytest.mark.parametrize("steps", [480, pytest.param(1500, marks=pytest.mark.long)])
def test_chunks_of_a_wild_person_keep_every_limit_and_end_at_rest(steps):
    random, driven, envelope = np.random.default_rng(0), Driven(), Envelope(TASK)
    for step in range(steps):
        if step % 40 == 0:
            twist = random.uniform(-1.5, 1.5, 6) * (random.random(6) > 0.3)
            locked = () if random.random() < 0.5 else ("roll", "pitch")
            frame = "tool" if random.random() < 0.5 else "base"
            driven.steering = Steering(locked=locked, frame=frame, linear_speed=0.3, angular_speed=1.0)
        actions = driven.ask(Command(random.random() > 0.05 and step % 160 < 120, twist))
        verdict = envelope.check(driven.chunk, driven.now_ns, actions[0, :3])
        assert verdict.ok, f"step {step}: {verdict.reason}"
        np.testing.assert_allclose(actions[-1, :3], actions[-2, :3], atol=1e-6)


@pytest.mark.parametrize("limits", [{}, {"max_speed": 0.1, "max_turn_rate": 0.3}])
@pytest.mark.parametrize("by", ["twist", "offset"])
def test_the_fastest_steering_in_every_direction_keeps_the_limits(limits, by):
    task = replace(TASK, limits=replace(TASK.limits, **limits))
    drive, envelope, now_ns = Drive(task), Envelope(task), 10**18
    drive.hold(AT, DOWN, 0.04, now_ns)
    steering = Steering(linear_speed=0.5, angular_speed=1.5, locked=())
    for step in range(210):  # there and back three times
        sign, now_ns = (-1.0) ** (step // 35), now_ns + STEP_NS
        far = Offset(np.full(3, sign), matrix_from_vector(np.full(3, 0.25 * sign)), 1)
        command = Command(True, np.full(6, sign)) if by == "twist" else Command(True, offset=far)
        chunk = drive.chunk(command, steering, now_ns, ROWS, DT_NS)
        verdict = envelope.check(chunk, now_ns, chunk.actions[0, :3])
        assert verdict.ok, f"step {step}: {verdict.reason}"


def test_it_reaches_the_speed_that_is_asked_for_and_no_diagonal_is_faster():
    driven = Driven(Steering(linear_speed=0.2))
    driven.ask(towards(x=1.0), 40)
    before = driven.ask(towards(x=1.0))[0, :3]
    np.testing.assert_allclose((driven.ask(towards(x=1.0))[0, :3] - before) / 0.025, [0.2, 0.0, 0.0], atol=1e-6)
    driven.ask(towards(y=1.0, z=1.0), 40)
    before = driven.ask(towards(y=1.0, z=1.0))[0, :3]
    speed = np.linalg.norm(driven.ask(towards(y=1.0, z=1.0))[0, :3] - before) / 0.025
    assert speed == pytest.approx(0.2, abs=1e-3)


def test_without_a_new_command_the_chunk_itself_brakes():
    driven = Driven()
    actions = driven.ask(towards(x=1.0), 40)
    moved = actions[-1, 0] - actions[0, 0]
    assert 0.15 * 0.15 < moved < 0.15 * 0.5, "it goes on for 0.15 s, then brakes"


def test_an_open_dead_mans_switch_brakes_at_once():
    driven = Driven()
    going = driven.ask(towards(x=1.0), 40)[0, 0]
    stopping = driven.ask(Command(False, np.ones(6)))
    assert stopping[-1, 0] - going < 0.03
    assert driven.ask(Command(), 40)[0, 0] == pytest.approx(stopping[-1, 0], abs=1e-6)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_wall_of_the_workspace_stops_it_in_time_and_lets_it_back(axis, sign):
    driven, column = Driven(Steering(linear_speed=0.3)), "xyz".index(axis)
    driven.drive.hold(AT, DOWN, 0.08, driven.now_ns)  # an object in the gripper would stop it above the table
    actions = driven.ask(towards(**{axis: sign}), 200)
    wall = TASK.limits.workspace_max[column] - 0.01 if sign > 0 else TASK.limits.workspace_min[column] + 0.01
    np.testing.assert_allclose(actions[:, column], wall, atol=1e-4)
    back = driven.ask(towards(**{axis: -sign}), 20)[0, column]
    assert sign * (wall - back) > 0.05


def test_a_held_object_stops_above_the_table_and_comes_back():
    driven = Driven(Steering(linear_speed=0.3))
    held = next(part for part in TASK.tool_shape if part.held)
    lowest = held.end[2] + held.radius
    low = driven.ask(towards(z=-1.0), 200)[-1, 2]
    assert lowest < low < lowest + 0.05, "it brakes where the next 0.15 s would lead into the table"
    assert driven.ask(towards(z=1.0), 20)[0, 2] > low + 0.05


def test_a_tool_that_starts_beyond_a_wall_may_only_come_back():
    driven = Driven()
    outside = np.array([TASK.limits.workspace_max[0] + 0.02, 0.0, 0.3])
    driven.drive.hold(outside, DOWN, 0.04, driven.now_ns)
    assert driven.ask(towards(x=1.0), 20)[0, 0] == pytest.approx(outside[0], abs=1e-6)
    assert driven.ask(towards(x=-1.0), 40)[0, 0] < outside[0] - 0.05


def test_the_tool_tilts_up_to_the_limit_and_back():
    driven = Driven(FREE)
    envelope = Envelope(TASK)
    for _ in range(200):
        actions = driven.ask(towards(roll=1.0))
        assert envelope.check(driven.chunk, driven.now_ns, actions[0, :3]).ok
    tilt = float(np.arccos(-matrix_from_6d(actions[0, 3:9])[2, 2]))
    assert 0.4 < tilt < TASK.limits.max_tilt
    righted = float(np.arccos(-matrix_from_6d(driven.ask(towards(roll=-1.0), 25)[0, 3:9])[2, 2]))
    assert righted < tilt - 0.2


def test_locked_axes_do_not_move():
    driven = Driven(Steering(locked=("x", "roll", "pitch")))
    actions = driven.ask(towards(x=1.0, y=1.0, roll=1.0, yaw=1.0), 40)
    assert actions[0, 0] == pytest.approx(AT[0], abs=1e-9)
    assert actions[0, 1] > 0.05
    np.testing.assert_allclose(matrix_from_6d(actions[0, 3:9])[:, 2], [0.0, 0.0, -1.0], atol=1e-9)


def test_in_the_tools_frame_forward_is_where_the_tool_points():
    driven = Driven(Steering(frame="tool", locked=()))
    # The tool points straight down: its z axis is down.
    assert driven.ask(towards(z=1.0), 20)[0, 2] < AT[2] - 0.02


def test_the_gripper_opens_closes_and_toggles():
    driven = Driven()
    assert driven.ask(Command(gripper=1.0))[0, 9] == pytest.approx(0.08)
    assert driven.ask(Command(toggle=True))[0, 9] == 0.0
    assert driven.ask(Command())[0, 9] == 0.0
    assert driven.ask(Command(toggle=True))[0, 9] == pytest.approx(0.08)
    assert driven.ask(Command(gripper=0.25))[0, 9] == pytest.approx(0.02)


def test_actions_have_the_columns_of_the_task():
    gripper, position = (next(item for item in TASK.action if item.kind == kind) for kind in ("gripper", "position"))
    task = replace(TASK, action=(gripper, position))
    drive = Drive(task)
    drive.hold(AT, DOWN, 0.04, 0)
    np.testing.assert_allclose(drive.chunk(Command(), Steering(), 1, 2, DT_NS).actions, [[0.04, *AT]] * 2)
    with pytest.raises(BidError, match="commands no position"):
        Drive(replace(TASK, action=(gripper,)))


def offset(closing: int, *position: float, turn: float = 0.0) -> Command:
    rotation = matrix_from_vector(np.array([0.0, 0.0, turn]))
    return Command(True, offset=Offset(np.array(position), rotation, closing))


def test_a_device_in_space_is_followed_from_where_the_clutch_closed():
    driven = Driven(Steering(scale=0.5))
    moved = driven.ask(offset(1, 0.1, 0.0, -0.05, turn=0.4), 80)[0]
    np.testing.assert_allclose(moved[:3], AT + np.array([0.05, 0.0, -0.025]), atol=1e-5)
    turned = matrix_from_vector(np.array([0.0, 0.0, 0.4])) @ matrix_from_6d(DOWN)
    np.testing.assert_allclose(moved[3:9], matrix_to_6d(turned), atol=1e-5)
    # The clutch opens, the hand goes back, the clutch closes: nothing jumps.
    driven.ask(Command(), 10)
    np.testing.assert_allclose(driven.ask(offset(2, 0.0, 0.0, 0.0), 20)[0, :3], moved[:3], atol=1e-5)
    np.testing.assert_allclose(driven.ask(offset(2, 0.1, 0.0, 0.0), 80)[0, 0], moved[0] + 0.05, atol=1e-5)


def test_without_a_new_word_of_a_device_in_space_the_chunk_brakes_though_the_hand_is_far():
    driven = Driven()
    actions = driven.ask(offset(1, 0.15, 0.0, 0.0), 12)
    moved = actions[-1, 0] - actions[0, 0]
    assert 0.005 < moved < 0.15 * 0.5, "it goes on for 0.15 s, then brakes"
    assert np.abs(np.diff(actions[-3:, 0])).max() < 1e-4, "it is at rest at its end"


def test_a_leap_of_a_device_in_space_keeps_every_limit():
    driven, envelope = Driven(), Envelope(TASK)
    for step in range(300):
        driven.ask(offset(1, (-1.0) ** (step // 30), 0.5, -2.0, turn=3.0 * (-1.0) ** (step // 50)))
        verdict = envelope.check(driven.chunk, driven.now_ns, driven.chunk.actions[0, :3])
        assert verdict.ok, verdict.reason
