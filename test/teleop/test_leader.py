"""A leader arm: what its joints mean for the follower, and when nobody leads."""

from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.core.rotation import vector_from_matrix
from bid_ros.core.task import load_task
from bid_ros.robots.registry import ROBOTS
from bid_ros.teleop.leader import DEVICE, Leader, LeaderSettings

SECOND = 1_000_000_000
HOME = np.array([0.0, -0.28, 0.0, -2.40, 0.0, 2.12, 0.785])
FRANKA = ROBOTS.find("franka")


def joints(values, names=None):
    names = names or [f"joint{number}" for number in range(len(values))]
    return SimpleNamespace(name=names, position=list(values))


class Person:
    """Moves a leader and holds its switch."""

    def __init__(self, **settings) -> None:
        self.leader = Leader(LeaderSettings(**settings), 7, FRANKA.forward)

    def asks(self, message, now_ns=SECOND, held=True):
        self.leader.hear("leader/hold", SimpleNamespace(buttons=[int(held)]), now_ns)
        self.leader.hear("leader/joint_states", message, now_ns)
        return self.leader.poll(now_ns)


def test_the_tool_goes_as_the_leader_s_goes_from_where_it_was_taken():
    person, moved = Person(), HOME + np.eye(7)[0] * 0.2
    first = person.asks(joints(HOME))
    assert first.live
    np.testing.assert_allclose(first.offset.position, 0.0)
    offset = person.asks(joints(moved)).offset
    np.testing.assert_allclose(offset.position, FRANKA.forward(moved)[0] - FRANKA.forward(HOME)[0], atol=1e-12)
    np.testing.assert_allclose(vector_from_matrix(offset.rotation), [0, 0, 0.2], atol=1e-9)
    assert offset.closing == first.offset.closing


def test_let_go_and_taken_again_it_counts_from_there():
    person, moved = Person(), HOME + 0.1
    closing = person.asks(joints(HOME)).offset.closing
    assert not person.asks(joints(moved), held=False).live
    again = person.asks(joints(moved)).offset
    assert again.closing == closing + 1
    np.testing.assert_allclose(again.position, 0.0)


@pytest.mark.parametrize("silent", ["leader/hold", "leader/joint_states"])
def test_silence_of_joints_or_switch_lets_go_and_the_next_word_jumps_nothing(silent):
    person = Person()
    closing = person.asks(joints(HOME)).offset.closing
    later = SECOND + 251_000_000
    for topic, message in (
        ("leader/hold", SimpleNamespace(buttons=[1])),
        ("leader/joint_states", joints(HOME + 0.3)),
    ):
        if topic != silent:
            person.leader.hear(topic, message, later)
    assert not person.leader.poll(later).live
    command = person.asks(joints(HOME + 0.3), later)
    assert command.offset.closing == closing + 1
    np.testing.assert_allclose(command.offset.position, 0.0)


def test_before_an_episode_nothing_counts_and_no_number_leads_nowhere():
    person = Person()
    person.asks(joints(HOME))
    person.leader.begin(SECOND)
    assert not person.leader.poll(SECOND).live
    assert not person.asks(joints([float("nan"), *HOME[1:]])).live
    assert not person.asks(joints(HOME), held=False).live
    person.leader.hear("leader/hold", SimpleNamespace(buttons=[]), SECOND)
    assert not person.leader.poll(SECOND).live


def test_signs_offsets_scale_and_names_make_the_leader_s_joints_the_follower_s():
    names = [f"gello_{letter}" for letter in "abcdefg"]
    signs, scale, offsets = (1, -1, 1, 1, -1, 1, 1), (1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0), tuple(0.1 * HOME)
    person = Person(joints=tuple(names), signs=signs, scale=scale, offsets=offsets)

    def of_leader(follower):
        return ((follower - np.array(offsets)) / np.array(signs) / np.array(scale))[::-1]

    person.asks(joints(of_leader(HOME), names[::-1]))
    moved = HOME + np.array([0.0, 0.1, -0.1, 0.1, 0.2, 0.0, 0.1])
    offset = person.asks(joints(of_leader(moved), names[::-1])).offset
    np.testing.assert_allclose(offset.position, FRANKA.forward(moved)[0] - FRANKA.forward(HOME)[0], atol=1e-12)


@pytest.mark.parametrize("turned", [-1, 1])
def test_an_encoder_that_passes_half_a_turn_does_not_turn_the_tool_back(turned):
    person, last = Person(scale=(0.5,) * 7), np.eye(7)[6]
    before, after = (2 * HOME * (1 - last) + turned * angle * last for angle in (3.13, -3.13))
    person.asks(joints(before))
    for angles in (after, before, after):
        offset = person.asks(joints(angles)).offset
        passed = np.linalg.norm(vector_from_matrix(offset.rotation))
        assert passed == pytest.approx(0.0 if angles is before else (2 * np.pi - 6.26) / 2, abs=1e-9)


def test_an_encoder_may_turn_round_while_nobody_holds_the_switch():
    moves, elbow = [(3.0, True), (3.2, False), (4.2, False), (4.3, True), (4.4, True)], np.eye(7)[5]

    def led(read):
        person = Person(scale=(0.5,) * 7)
        return [person.asks(joints(2 * HOME * (1 - elbow) + read(angle) * elbow), held=held) for angle, held in moves]

    around, straight = led(lambda angle: angle - 2 * np.pi * (angle > np.pi)), led(lambda angle: angle)
    np.testing.assert_allclose(around[-1].offset.position, straight[-1].offset.position, atol=1e-12)
    assert np.linalg.norm(straight[-1].offset.position) > 1e-3


def test_a_leader_without_names_keeps_those_of_its_first_message():
    person, names, moved = Person(), [f"fr3_joint{number}" for number in range(1, 8)], HOME + 0.1
    person.asks(joints(HOME, names))
    offset = person.asks(joints(moved[::-1], names[::-1])).offset
    np.testing.assert_allclose(offset.position, FRANKA.forward(moved)[0] - FRANKA.forward(HOME)[0], atol=1e-12)


def test_the_trigger_squeezes_the_gripper_as_far():
    person = Person(gripper="trigger", closed=0.7, opened=-0.1)
    names = [*(f"joint{number}" for number in range(7)), "trigger"]
    first, *shares = [person.asks(joints([*HOME, at], names)).gripper for at in (0.7, 0.3, -0.1, -0.5, 0.7)]
    assert first is None, "what the arm holds is not dropped by taking over"
    np.testing.assert_allclose(shares, [0.5, 1.0, 1.0, 0.0])
    assert Person().asks(joints(HOME)).gripper is None


@pytest.mark.parametrize(
    ("settings", "message", "sentence"),
    [
        ({"joints": ("a",) * 7}, joints(HOME), "lacks a, a, .*; valid is a position for each joint"),
        ({"gripper": "trigger"}, joints(HOME), "lacks trigger"),
        ({}, joints(HOME[:5]), "has 5 positions; valid is a position for each joint"),
        ({}, joints(HOME, ["elbow", "lift", "pan", "wrist_1", "wrist_2", "wrist_3", "tool"]), "names elbow, lift, pan"),
        (
            {},
            joints(HOME, [f"joint{number}" for number in range(7, 0, -1)]),
            "names joint7, .*valid is the setting",
        ),
        ({}, SimpleNamespace(name=[f"j{i}" for i in range(7)], position=[]), "has 0 positions"),
    ],
)
def test_a_message_of_another_arm_is_one_sentence(settings, message, sentence):
    with pytest.raises(BidError, match=f"a message on leader/joint_states {sentence}"):
        Person(**settings).asks(message)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"signs": (1.0,)}, "leader's signs are 1 values; valid are 7"),
        ({"closed": 1.0}, "closed and opened are both 1.0"),
        ({"hold_topic": "leader/joint_states"}, "topic and hold_topic are both"),
    ],
)
def test_settings_that_fit_no_arm_are_refused(settings, sentence):
    with pytest.raises(BidError, match=sentence):
        Person(**settings)


def test_the_node_hears_both_topics_for_either_arm(root):
    options = DEVICE.read("signs: [1, 1, 1, 1, 1, -1]")
    task = load_task(root / "config" / "ur5_pick" / "task.yaml")
    assert DEVICE.topics(task, options) == {
        "leader/joint_states": "sensor_msgs/msg/JointState",
        "leader/hold": "sensor_msgs/msg/Joy",
    }
    DEVICE.open(task, options).close()
    with pytest.raises(BidError, match="signs are 6 values; valid are 7"):
        DEVICE.open(load_task(root / "config" / "franka_place" / "task.yaml"), options)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"offsets": (0.0, -90.0)}, r"offsets\[1\] is -90\.0; valid is a number from -12\.6 to 12\.6"),
        (
            {"signs": (1.0, 0.0)},
            r"signs are \[1\.0, 0\.0\]; valid is 1 or -1 for each joint, and scale for another factor",
        ),
        ({"tool_offset": (0.0, 0.0, 100.0)}, r"tool_offset\[2\] is 100\.0; valid is a number from -1 to 1"),
    ],
)
def test_settings_in_other_units_are_refused(settings, said):
    with pytest.raises(BidError, match=said):
        LeaderSettings(**settings)
