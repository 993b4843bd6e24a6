"""The Hand's commands, from the first byte to the answer. In lockstep."""

import struct

import pytest
from fci_client import HAND, RawClient, lockstep

HOMING, GRASP, MOVE, STOP = 1, 2, 3, 4
SUCCESS, FAIL = 0, 1


@pytest.fixture(scope="module")
def controller():
    with lockstep("127.0.47.1") as served:
        yield served


@pytest.fixture
def hand(controller):
    made = RawClient(controller, HAND)
    made.connect()
    yield made
    made.close()
    controller.cycle()


def width(hand):
    return vars(hand.controller.hand)["_robot"].hand_width


def answer(hand, command, *values, cycles=6000):
    """Give a command; return its status and the cycles until the answer."""
    number = hand.ask(command, struct.pack(f"<{len(values)}d", *values))
    for cycle in range(cycles):
        hand.wait()
        for answered, own, payload in hand.answers():
            assert (answered, own) == (command, number)
            return struct.unpack("<H", payload)[0], cycle
    raise TimeoutError("no answer")


def test_the_fingers_go_to_a_width_and_then_the_answer_comes(hand):
    status, cycles = answer(hand, MOVE, 0.03, 0.05)
    assert status == SUCCESS
    assert width(hand) == pytest.approx(0.03, abs=2e-3)
    assert cycles > 100, "at rest for a tenth of a second first"


def test_a_grasp_of_nothing_fails(hand):
    assert answer(hand, GRASP, 0.05, 0.002, 0.002, 0.05, 20.0)[0] == SUCCESS, "the fingers do stop at that width"
    assert answer(hand, GRASP, -0.02, 0.002, 0.002, 0.05, 20.0)[0] == FAIL, "but not at this one"


def test_homing_opens_and_returns(hand):
    answer(hand, MOVE, 0.02, 0.05)
    before = width(hand)
    number = hand.ask(HOMING)
    widest, done = 0.0, []
    while not done:
        hand.wait()
        widest = max(widest, width(hand))
        done = hand.answers()
    assert [(command, own) for command, own, _ in done] == [(HOMING, number)]
    assert widest > 0.078
    assert width(hand) == pytest.approx(before, abs=2e-3)


def test_a_stop_is_answered_at_once_and_the_command_before_never(hand):
    hand.ask(MOVE, struct.pack("<2d", 0.08, 0.05))
    hand.wait(20)
    status, cycles = answer(hand, STOP)
    assert (status, cycles) == (SUCCESS, 0)
    at = width(hand)
    assert hand.answers() == []
    hand.wait(300)
    assert hand.answers() == []
    assert width(hand) == pytest.approx(at, abs=5e-3)


def test_a_client_that_leaves_is_not_answered_and_the_next_one_is(controller):
    first = RawClient(controller, HAND)
    first.connect()
    first.ask(MOVE, struct.pack("<2d", 0.08, 0.05))
    first.wait(5)
    first.close()
    controller.cycle()
    second = RawClient(controller, HAND)
    second.connect()
    second.wait(300)
    assert second.answers() == []
    assert answer(second, MOVE, 0.04, 0.05)[0] == SUCCESS
    second.close()
    controller.cycle()
