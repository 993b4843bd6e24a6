import time

import pytest
from ur_twin import TwinProcess, free_address

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.robots.connecting import await_robot, connect_within
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig


class Late:
    """An arm that answers the third call."""

    calls = 0

    def connect(self) -> None:
        self.calls += 1
        if self.calls < 3:
            raise ArmError(f"nothing answers, try {self.calls}")


def test_it_goes_on_trying_until_the_arm_is_there():
    arm = Late()
    connect_within(arm, 30.0, lambda: False)
    assert arm.calls == 3


def test_when_the_time_is_over_it_says_what_the_last_try_said():
    with pytest.raises(ArmError, match="try 1"):
        connect_within(Late(), -1.0, lambda: False)


def test_a_run_that_ends_does_not_wait_for_the_arm():
    begun = time.monotonic()
    with pytest.raises(ArmError, match="try 1"):
        connect_within(Late(), 30.0, lambda: True)
    assert time.monotonic() - begun < 10.0


def test_a_robot_that_is_switched_on_late_is_awaited_and_each_reason_is_said_once():
    """Nothing listens, then a pendant in local mode, then one whose robot is off; each is a person's to change."""
    address, twins, said = free_address(), [], []
    arm = build_arm("ur", UrConfig(address, twin=True, gripper=None, state_timeout_s=0.5))

    def switch_on():
        twins.append(TwinProcess("--local", address=address))

    def press(*lines):
        assert [twins[0].pendant(line) for line in lines] == ["ok"] * len(lines)

    steps = {
        "check the address, power and cable": switch_on,
        "is in local mode": lambda: press("power off", "remote"),
        "is in the mode": lambda: press("power on"),
    }

    def say(text):
        said.append(text)
        next(step for words, step in steps.items() if words in text)()

    try:
        last = await_robot(arm, 60.0, lambda: False, say, again_s=0.05)
        assert said[-1] == f"error: {last}; waiting for it, 60 s in all: Ctrl-C ends the run"
        found = [next(words for words in steps if words in text) for text in said]
        assert list(dict.fromkeys(found)) == list(steps) and len(set(said)) == len(said), said
        assert not arm.state().fault
    finally:
        arm.close()
        for twin in twins:
            twin.close()


def test_what_a_person_at_the_robot_cannot_change_is_not_waited_for():
    def connect():
        raise ArmError("of another version")

    arm = Late()
    arm.connect = connect
    with pytest.raises(ArmError, match="another version"):
        await_robot(arm, 30.0, lambda: False, lambda text: pytest.fail(text))


def test_after_its_time_or_at_the_end_of_the_run_nobody_waits_for_a_robot():
    def connect():
        raise RobotAwayError("nothing answers")

    arm = Late()
    arm.connect = connect
    for wait_s, ended in ((0.0, False), (30.0, True)):
        with pytest.raises(RobotAwayError, match="nothing answers"):
            await_robot(arm, wait_s, lambda ended=ended: ended, lambda text: pytest.fail(text))
